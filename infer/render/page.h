// The page of --html: a file that shows data as figures in a browser and needs no network.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace infer {

/// JSON without line breaks; bytes that are no UTF-8 become U+FFFD.
std::string one_line(const nlohmann::ordered_json& json);

/// Throws InvalidArgument where `path` cannot be written: to be asked before long work.
void check_page(const std::filesystem::path& path);

/// Writes the page with `data` in it, whole or not at all, and on stderr its size, unless `quiet`.
/// Throws InvalidArgument where it cannot be.
void write_page(const std::filesystem::path& path, const nlohmann::ordered_json& data, bool quiet);

}  // namespace infer
