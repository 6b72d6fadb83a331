#include "infer/commands/shard/shard_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "files/corpus/fingerprint.h"
#include "files/files.h"
#include "infer/files.h"
#include "phasor/errors.h"

namespace infer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

[[noreturn]] void refuse_damaged(const fs::path& file) {
  throw phasor::InvalidArgument(fmt::format("{} is damaged", file.string()));
}

/// The shards that are not done, as "3" or "9-99"; up to `most`.
std::vector<std::string> ranges_left(const std::vector<bool>& done, size_t most) {
  std::vector<std::string> ranges;
  for (size_t i = 0; i < done.size() && ranges.size() < most; ++i) {
    if (done[i]) continue;
    size_t last = i;
    while (last + 1 < done.size() && !done[last + 1]) ++last;
    ranges.push_back(last == i ? fmt::format("{}", i) : fmt::format("{}-{}", i, last));
    i = last;
  }
  return ranges;
}

}  // namespace

void ShardRecord::write(const Plan& plan, int64_t shard) const {
  Json json = VectorRecord::json();
  json.update(Json{{"shard", shard},
                   {"plan", this->plan},
                   {"arithmetic", arithmetic},
                   {"lines_cut", lines_cut},
                   {"lines_invalid", lines_invalid},
                   {"host", host},
                   {"seconds", seconds}});
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  TemporaryFile file(fmt::format("shard {}", shard), plan.record_of(shard));
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

std::optional<ShardRecord> ShardRecord::read(const Plan& plan, int64_t shard) {
  const fs::path path = plan.record_of(shard), file = plan.file_of(shard);
  std::error_code problem;
  if (!fs::exists(path, problem) && !problem) return std::nullopt;
  ShardRecord record;
  try {
    constexpr int64_t kMostBytes = 1 << 16;
    const Json json =
        as_input("", [&] { return phasor::internal::read_json_object(path, kMostBytes); }).take();
    const auto count_of = [&](const char* name) {
      constexpr uint64_t kMost = uint64_t{1} << 46;  // sums of them fit into 64 bits
      const Json& number = json.at(name);
      if (!number.is_number_unsigned() || number.get<uint64_t>() > kMost) refuse_damaged(path);
      return number.get<int64_t>();
    };
    record = {VectorRecord::of(json),   json.at("plan"),    json.at("arithmetic"),
              json.at("host"),          json.at("seconds"), count_of("lines_cut"),
              count_of("lines_invalid")};
  } catch (const nlohmann::json::exception&) {
    refuse_damaged(path);
  }
  if (record.plan != plan.id) {
    throw phasor::InvalidArgument(fmt::format("{} belongs to another plan", path.string()));
  }
  const auto bytes = fs::file_size(file, problem);
  if (problem) {
    throw phasor::InvalidArgument(fmt::format("{}: {}", file.string(), problem.message()));
  }
  for (const int64_t wanted : {record.bytes, plan.bytes_of(shard).value_or(record.bytes)}) {
    if (bytes == static_cast<uint64_t>(wanted)) continue;
    throw phasor::InvalidArgument(
        fmt::format("{} has {} bytes, and not {}", file.string(), bytes, wanted));
  }
  return record;
}

void ShardRecord::verify(const Plan& plan, int64_t shard) const {
  const fs::path file = plan.file_of(shard);
  if (as_input("", [&] { return fingerprint_of(file); }) != xxh64) {
    refuse_damaged(file);
  }
}

ShardFiles::ShardFiles(const Plan& plan) : done(plan.size()) {
  constexpr std::string_view kBegin = "shard-", kDone = ".done";
  for (int64_t first = 0; first < plan.size(); first += Plan::kGroupSize) {
    const fs::path group = plan.group_of(first);
    std::error_code problem;
    refuse_link(group);
    for (fs::directory_iterator entry(group, problem), end; !problem && entry != end;
         entry.increment(problem)) {
      const std::string name = entry->path().filename().string();
      if (!name.starts_with(kBegin)) continue;
      if (LeftFile left; is_temporary(entry->path(), left)) {
        temporary.push_back(std::move(left));
      } else if (name.ends_with(kDone)) {
        const auto digits = std::string_view(name).substr(
            kBegin.size(), name.size() - kBegin.size() - kDone.size());
        const int64_t shard = parse_number<int64_t>(digits).value_or(-1);
        if (shard < first || shard >= std::min(first + Plan::kGroupSize, plan.size())) continue;
        if (plan.record_of(shard) != entry->path() || done[shard]) continue;
        done[shard] = true;
        ++num_done;
      }
    }
    if (problem && problem != std::errc::no_such_file_or_directory) {
      throw phasor::InvalidArgument(fmt::format("{}: {}", group.string(), problem.message()));
    }
  }
}

void ShardFiles::refuse_link(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_symlink(folder, ignored)) return;
  throw phasor::InvalidArgument(
      fmt::format("{}: it is a link, and files would be written and removed where it leads; put "
                  "a folder in its place",
                  folder.string()));
}

std::vector<std::string> ShardFiles::left() const { return ranges_left(done, done.size()); }

std::string ShardFiles::left_text() const {
  constexpr size_t kMost = 10;
  std::vector<std::string> ranges = ranges_left(done, kMost + 1);
  if (ranges.size() > kMost) ranges.back() = "…";
  return fmt::format("{}", fmt::join(ranges, " "));
}

}  // namespace infer
