// The page of infer observe and infer compare: all that was measured of some texts.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "infer/experiment/observed.h"
#include "infer/render/page.h"

namespace infer {

class HtmlReport {
 public:
  /// More texts than these are left out: each takes up to a megabyte for each run.
  static constexpr size_t kMostTexts = 16;

  /// Throws InvalidArgument where `path` cannot be written.
  explicit HtmlReport(const std::filesystem::path& path) : page_(path) {}

  /// The next text in its one or two runs. Their patterns should be there: the page keeps 8 bits of
  /// each weight, and means of blocks where there are more than 128 × 128.
  void add(std::span<const Observed> runs);
  /// Adds a run to text `number`, from 0.
  void add(size_t number, const Observed& run);

  /// Writes the page, whole or not at all; on stderr its size, unless `quiet`.
  void write(bool quiet);

 private:
  Page page_;
  nlohmann::ordered_json texts_ = nlohmann::ordered_json::array();
  size_t left_out_ = 0;
};

}  // namespace infer
