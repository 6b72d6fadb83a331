// What the fuzzers share. Each gives strangers' bytes to one parser. ./dev fuzz
// NAME runs it under libFuzzer; fuzz_test runs each on its seeds, and on what once made it fail.
#pragma once

#include "tests/support/test.h"

namespace phasor::fuzz {

struct Fuzzer {
  const char* name;
  /// Any bytes. Whether they were accepted: nothing refused them before the work was done. It
  /// throws, or ends the program, where they show a defect.
  bool (*run)(std::string_view bytes);
  /// Inputs to begin with, all of them accepted, so that what comes behind a parser is fuzzed, too.
  std::vector<std::string> (*seeds)();
  std::vector<std::string> words;         // of the format: libFuzzer's dictionary
  std::vector<std::string> refused = {};  // further seeds
};

std::span<const Fuzzer> fuzzers();

/// The words of a text between blanks, with the escapes \n, \r, \s (a blank), \\ and \xHH (a byte).
std::vector<std::string> words(std::string_view text);

/// Files of an input, by name. An input is a text of parts, each behind a line "=== NAME"; the
/// bytes before the first such line belong to `first`. Names that are not asked for are left out.
using Parts = std::map<std::string, std::string, std::less<>>;
using Names = std::span<const std::string_view>;
Parts parts_of(std::string_view input, std::string_view first, Names others = {});
/// The input of these files.
std::string input_of(const Parts& parts);

/// A folder in memory, where the system has such folders.
class Folder : public TempFolder {
 public:
  Folder();
  using TempFolder::write;
  /// Writes those files of an input that have one of `names`, and removes the others.
  void write(const Parts& parts, Names names) const;
};

/// Choices that an input makes, from its first byte on; 0 behind its end. Or else an input is being
/// written: then each choice is the usual one, and the input will make it when it is read.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : rest_(bytes) {}
  explicit Choices(std::string& written) : written_(&written) {}

  bool empty() const { return rest_.empty(); }
  uint8_t byte(uint8_t usual = 0);
  /// 0 to count − 1.
  size_t below(size_t count, size_t usual = 0) { return byte(static_cast<uint8_t>(usual)) % count; }
  bool coin(bool usual = false) { return below(2, usual ? 1 : 0) == 1; }
  /// Once in 16 times; never the usual choice.
  bool rarely() { return below(16) == 15; }
  /// Often small or at the edge of what a type can hold.
  int64_t number(uint8_t usual = 0);
  std::string text(std::string_view usual = {});

 private:
  std::string_view rest_;
  std::string* written_ = nullptr;
};

/// Calls `use`, which may throw nothing but phasor's exceptions. False if it threw one.
template <typename Use>
bool survive(const Use& use) {
  try {
    use();
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Reads all of them, for the address sanitizer to see.
void look_at(const void* bytes, size_t size);

/// Says what must hold and does not, and ends the program.
void require(bool holds, const char* what);

}  // namespace phasor::fuzz
