// The page of --html and of infer serve: a file that shows data as figures in a browser and needs
// no network.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "files/corpus/temporary_file.h"

namespace infer {

/// As RFC 4648 has it: "AAAAPw==".
std::string base64(std::span<const std::byte> bytes);

/// The page with `data` in it; it asks the network for nothing.
std::string page_with(const nlohmann::ordered_json& data);

/// Written whole or not at all. All throw InvalidArgument where `path` cannot be written: the first
/// at once, before anything is measured for the page.
class Page {
 public:
  explicit Page(const std::filesystem::path& path) : path_(path), file_("--html", path) {}
  /// With `data` in it; on stderr its size, unless `quiet`.
  void write(const nlohmann::ordered_json& data, bool quiet);

 private:
  std::filesystem::path path_;
  TemporaryFile file_;
};

}  // namespace infer
