// The page of --html: everything observed about some texts, in one file that needs no network.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "infer/experiment/deviation.h"
#include "infer/experiment/observed.h"

namespace infer {

/// A page in the making. Every text has one run, or two that are shown beside each other.
class HtmlReport {
 public:
  /// More texts than these are left out: each takes up to a megabyte for each run.
  static constexpr size_t kMostTexts = 16;

  /// Throws InvalidArgument where `path` cannot be written. It is as it was until write().
  explicit HtmlReport(const std::filesystem::path& path);

  /// The next run of text `i` (from 0), like "before". Its patterns should be in `observed`: the
  /// page keeps 8 bits of each weight, and means of blocks where there are more than 128 × 128.
  void add_run(size_t i, const std::string& label, const Observed& observed);
  /// How far the states of text `i` moved from its first run to its second, [L + 1].
  void add_moved(size_t i, const std::vector<Deviation>& moved);

  /// Writes the page, whole or not at all; on stderr its size, unless `quiet`.
  void write(bool quiet);

 private:
  std::filesystem::path path_;
  std::map<size_t, nlohmann::ordered_json> texts_;
  size_t left_out_ = 0;
};

}  // namespace infer
