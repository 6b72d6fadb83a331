// The page of infer observe and infer compare: all that was measured of some texts.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "infer/cli/study.h"
#include "infer/render/page.h"

namespace infer {

/// What the page says of a text, or of means over many, in its runs. Their patterns should be
/// there: 8 bits of each weight are kept, and means of blocks where there are more than 128 × 128.
nlohmann::ordered_json text_json(std::span<const Observed> runs);
/// All that the page is drawn from, from what text_json() says of each text.
nlohmann::ordered_json report_json(nlohmann::ordered_json texts);

class HtmlReport {
 public:
  /// More texts than these are left out: each takes up to a megabyte for each run.
  static constexpr size_t kMostTexts = 16;

  /// Throws InvalidArgument where `path` cannot be written.
  explicit HtmlReport(const std::filesystem::path& path) : page_(path) {}

  /// The next text in its runs.
  void add(std::span<const Observed> runs);
  /// Adds a run to text `number`, from 0.
  void add(size_t number, const Observed& run);

  /// So many more texts are not on the page.
  void leave_out(size_t texts) { left_out_ += texts; }

  /// Writes the page, whole or not at all; on stderr its size, unless `quiet`.
  void write(bool quiet);

 private:
  Page page_;
  nlohmann::ordered_json texts_ = nlohmann::ordered_json::array();
  size_t left_out_ = 0;
};

}  // namespace infer
