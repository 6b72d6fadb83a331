// A program that is killed just before one of its system calls that change files.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace phasor {

/// Runs the program without output, and kills it when its main thread begins the call number
/// `calls` (from 0) of those that open, write, rename, remove or lock files. Returns whether it
/// came that far; a program that ends by itself must succeed.
bool kill_at_call(const std::vector<std::string>& arguments, int calls);

/// The same, but calls `meanwhile` there, and lets the program go on to its end.
bool stop_at_call(const std::vector<std::string>& arguments, int calls,
                  const std::function<void()>& meanwhile);

/// Whether this process may trace others.
bool can_kill_at_call();

}  // namespace phasor
