#include "capi/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capi/handles.h"
#include "phasor/errors.h"

namespace phasor::internal {

void require(const void* pointer, std::string_view what) {
  if (pointer == nullptr) throw InvalidArgument(fmt::format("{} is NULL", what));
}

void check_size(std::string_view what, size_t given, size_t least) {
  constexpr size_t kMost = 4096;
  if (given >= least && given <= kMost) return;
  throw InvalidArgument(
      fmt::format("{} says that its size is {}; write .size = sizeof({})", what, given, what));
}

void check_unknown(std::string_view what, const char* unknown, size_t size) {
  if (std::all_of(unknown, unknown + size, [](char byte) { return byte == 0; })) return;
  throw InvalidArgument(
      fmt::format("{} sets a field that phasor {} does not have; the program was compiled with a "
                  "later version",
                  what, phasor_version()));
}

void check_count(std::string_view what, const void* data, int64_t count) {
  constexpr int64_t kMost = int64_t{1} << 48;  // of any element, what an address can reach
  if (count < 0 || count > kMost) {
    throw InvalidArgument(fmt::format("the number of {} is {}", what, count));
  }
  if (count > 0) require(data, what);
}

void check_given(std::string_view what, const void* data, int64_t count) {
  if (data == nullptr || count != 0) return;
  throw InvalidArgument(fmt::format("there is a pointer to {}, but their number is 0", what));
}

void check_number(const EnumNames& names, int32_t number, int32_t first) {
  const int64_t last = first + std::ssize(names.all) - 1;
  if (number >= first && number <= last) return;
  throw InvalidArgument(fmt::format("there is no {} with the number {}; {} to {} are: {}",
                                    names.what, number, first, last, fmt::join(names.all, ", ")));
}

std::vector<std::string_view> texts_of(const phasor_texts* texts, std::string_view what) {
  require(texts, what);
  const auto data = array_at(texts->data, texts->count, what);
  std::vector<std::string_view> views(data.size());
  for (size_t i = 0; i < data.size(); ++i) {
    const int64_t size = texts->sizes != nullptr ? texts->sizes[i] : 0;
    if (data[i] == nullptr || size < 0) {
      throw InvalidArgument(
          fmt::format("{} {} is {}", what, i,
                      data[i] == nullptr ? "NULL" : fmt::format("{} bytes long", size)));
    }
    views[i] = texts->sizes != nullptr ? std::string_view(data[i], static_cast<size_t>(size))
                                       : std::string_view(data[i]);
  }
  return views;
}

Positions positions_of(const phasor_positions* given, const PositionConfig& own) {
  if (given == nullptr) return {};
  const phasor_positions options =
      options_of(given, "phasor_positions", &phasor_positions::num_edits);
  Positions positions;
  if (options.kind != nullptr && options.table != nullptr) {
    throw InvalidArgument("positions have a kind and a table; give one of them");
  }
  if (options.kind != nullptr) positions = Positions::named(options.kind, own);
  if (options.table_rows != 0 || options.table_width != 0) require(options.table, "the table");
  if (options.table != nullptr) {
    const int64_t rows = options.table_rows, width = options.table_width;
    if (rows < 1 || width < 1 || rows > (int64_t{1} << 40) / width) {
      throw InvalidArgument(
          fmt::format("no position table has {} rows of {} numbers", rows, width));
    }
    positions = Positions::table(
        {.rows = rows, .d_model = width, .values = {options.table, options.table + rows * width}});
  }
  const auto ids = array_if_given(options.ids, options.num_ids, "position ids");
  if (!ids.empty()) positions = positions.at({ids.begin(), ids.end()});
  for (const char* const edit : array_at(options.edits, options.num_edits, "edits")) {
    require(edit, "an edit of positions");
    positions = positions.edited(edit);
  }
  return positions;
}

std::vector<ResidualCut> cuts_of(const phasor_run_options& options) {
  std::vector<ResidualCut> cuts;
  for (const auto& [layer, site] :
       array_at(options.cut_residuals, options.num_cut_residuals, "cut residual connections"))
    cuts.push_back({.layer = layer, .site = value_of<ResidualCut::Site>(site)});
  return cuts;
}

Overflow overflow_of(int32_t overflow, Overflow otherwise) {
  static_assert(static_cast<int>(Overflow::kError) + 1 == PHASOR_OVERFLOW_ERROR &&
                static_cast<int>(Overflow::kWindow) + 1 == PHASOR_OVERFLOW_WINDOW);
  if (overflow == PHASOR_OVERFLOW_DEFAULT) return otherwise;
  return value_of<Overflow>(overflow, PHASOR_OVERFLOW_ERROR);
}

TruncationSide side_of(int32_t side) {
  static_assert(static_cast<int>(TruncationSide::kRight) == PHASOR_TRUNCATION_RIGHT &&
                static_cast<int>(TruncationSide::kLeft) == PHASOR_TRUNCATION_LEFT);
  if (side < PHASOR_TRUNCATION_TOKENIZER || side > PHASOR_TRUNCATION_LEFT) {
    throw InvalidArgument(fmt::format("truncation_side is {}; it must be 0, 1 or 2", side));
  }
  return static_cast<TruncationSide>(side);
}

OffsetUnit unit_of(int32_t unit) {
  static_assert(static_cast<int>(OffsetUnit::kBytes) == PHASOR_OFFSETS_IN_BYTES &&
                static_cast<int>(OffsetUnit::kCharacters) == PHASOR_OFFSETS_IN_CHARACTERS);
  if (unit < PHASOR_NO_OFFSETS || unit > PHASOR_OFFSETS_IN_CHARACTERS)
    throw InvalidArgument(fmt::format("offset_unit is {}; it must be 0, 1 or 2", unit));
  return static_cast<OffsetUnit>(unit);
}

Aggregation aggregation_of(int32_t aggregation) {
  static_assert(static_cast<int>(Aggregation::kNone) == PHASOR_AGGREGATION_NONE &&
                static_cast<int>(Aggregation::kMax) == PHASOR_AGGREGATION_MAX);
  check_value(names<Aggregation>(), static_cast<size_t>(aggregation));
  return static_cast<Aggregation>(aggregation);
}

Progress progress_of(phasor_progress progress, void* user) {
  if (progress == nullptr) return {};
  return [progress, user](int64_t done, int64_t total) {
    if (progress(user, done, total) == 0) return;
    throw Error(ErrorCode::kCancelled, "the progress function ended the call");
  };
}

std::stop_token stop_of(const phasor_stop* stop) {
  return stop != nullptr ? stop->source.get_token() : std::stop_token();
}

}  // namespace phasor::internal
