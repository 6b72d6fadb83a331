#include "capi/arguments.h"

#include <algorithm>
#include <cstring>

#include "capi/handles.h"
#include "files/refuse.h"
#include "phasor/fields.h"
#include "phasor/version.h"

namespace phasor::internal {

void require(const void* pointer, std::string_view what) {
  if (pointer == nullptr) refuse<InvalidArgument>("{} is NULL", what);
}

void copy_struct(std::string_view what, const void* given, size_t least, void* known, size_t size) {
  constexpr size_t kMost = 4096;
  size_t count = 0;
  std::memcpy(&count, given, sizeof count);  // a struct begins with its size
  if (count < least || count > kMost) {
    refuse<InvalidArgument>("{} says that its size is {}; write .size = sizeof({})", what, count,
                            what);
  }
  const char* const bytes = static_cast<const char*>(given);
  if (std::any_of(bytes + std::min(count, size), bytes + count, [](char b) { return b != 0; })) {
    refuse<InvalidArgument>(
        "{} sets a field that phasor {} does not have; the program was compiled "
        "with a later version",
        what, PHASOR_VERSION);
  }
  std::memcpy(known, given, std::min(count, size));
}

void check_count(std::string_view what, const void* data, int64_t count) {
  constexpr int64_t kMost = int64_t{1} << 48;  // of any element, what an address can reach
  if (count < 0 || count > kMost) {
    refuse<InvalidArgument>("the number of {} is {}", what, count);
  }
  if (count > 0) require(data, what);
}

void check_given(std::string_view what, const void* data, int64_t count) {
  if (data == nullptr || count != 0) return;
  refuse<InvalidArgument>("there is a pointer to {}, but their number is 0", what);
}

std::vector<std::string_view> texts_of(const phasor_texts* texts, std::string_view what) {
  require(texts, what);
  const auto data = array_at(texts->data, texts->count, what);
  std::vector<std::string_view> views(data.size());
  for (size_t i = 0; i < data.size(); ++i) {
    const int64_t size = texts->sizes != nullptr ? texts->sizes[i] : 0;
    if (data[i] == nullptr || size < 0) {
      refuse<InvalidArgument>("{} {} is {}", what, i,
                              data[i] == nullptr ? "NULL" : fmt::format("{} bytes long", size));
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
  if (options.kind != nullptr && options.table != nullptr)
    throw InvalidArgument("positions have a kind and a table; give one of them");
  if (options.kind != nullptr) positions = Positions::named(options.kind, own);
  if (options.table_rows != 0 || options.table_width != 0) require(options.table, "the table");
  if (options.table != nullptr) {
    const int64_t rows = options.table_rows, width = options.table_width;
    if (rows < 1 || width < 1 || rows > (int64_t{1} << 40) / width) {
      refuse<InvalidArgument>("no position table has {} rows of {} numbers", rows, width);
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
    cuts.push_back({.layer = layer, .site = value_of(site, ResidualCut::Site::kBoth)});
  return cuts;
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

TextOptions text_options_of(const phasor_text_options* given, const PositionConfig& own) {
  const phasor_text_options c =
      options_of(given, "phasor_text_options", &phasor_text_options::stop);
  TextOptions options;
  for (const char* const* at = c.settings; at != nullptr && at[0] != nullptr; at += 2) {
    const Field& setting = field(at[0]);
    if (setting.read == nullptr)
      refuse<InvalidArgument>("{} is a field of phasor_text_options, no setting", setting.name);
    if (at[1] == nullptr) refuse<InvalidArgument>("the setting {} has no value", setting.name);
    try {
      setting.read(options, at[1]);
    } catch (const InvalidArgument& error) {
      refuse<InvalidArgument>("{}: {}", setting.name, error.what());
    }
  }
  options.positions = positions_of(c.positions, own);
  options.output = array_at(c.output, c.output_size, "floats for vectors");
  options.progress = progress_of(c.progress, c.user);
  options.stop = stop_of(c.stop);
  return options;
}

}  // namespace phasor::internal
