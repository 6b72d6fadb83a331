// The page of --html and of infer serve: a file that shows data as figures in a browser and needs
// no network.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infer/cli/input_options.h"
#include "infer/cli/save.h"

namespace infer {

/// The page with `data`, JSON, in it; it asks the network for nothing.
std::string page_with(std::string_view data);
/// The data of the page of infer observe, from what lens::to_json() says of each text with figures;
/// `cosines` of two texts' vectors, one for each run; `head`: the one that is shown first, else the
/// most positional.
std::string report_json(std::span<const std::string> texts, std::span<const double> cosines = {},
                        std::optional<HeadNumber> head = {});

/// Written whole or not at all. All throw InvalidArgument where `path` cannot be written: the first
/// at once, before anything is measured for the page.
class Page {
 public:
  explicit Page(const std::filesystem::path& path) : path_(path), file_("--html", path) {}
  /// With `data`, JSON, in it; on stderr its size, unless `quiet`.
  void write(std::string_view data, bool quiet);

 private:
  std::filesystem::path path_;
  TemporaryFile file_;
};

}  // namespace infer
