// The files of a plan's shards: what is done, being written and left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "files/corpus/temporary_file.h"
#include "infer/commands/shard/plan.h"

namespace infer {

/// What FOLDER/000/shard-000007.done says: the shard is done, and what its file holds.
struct ShardRecord : VectorRecord {
  std::string plan;        // its id
  std::string arithmetic;  // equal where machines compute the same last digits
  std::string host;
  double seconds = 0;
  int64_t lines_cut = 0, lines_invalid = 0;

  void write(const Plan& plan, int64_t shard) const;
  /// Empty where there is none. Throws InvalidArgument if it is damaged, belongs to another plan,
  /// or the shard's file has another size.
  static std::optional<ShardRecord> read(const Plan& plan, int64_t shard);
  /// Reads the shard's file. Throws InvalidArgument if it has changed since.
  void verify(const Plan& plan, int64_t shard) const;
};

/// Which shards are done, by the names in the folders alone.
struct ShardFiles {
  explicit ShardFiles(const Plan& plan);

  /// Throws InvalidArgument where a folder within a plan's is a link.
  static void refuse_link(const std::filesystem::path& folder);

  /// "3 9-99 …": the first ranges of shards that are not done.
  std::string left_text() const;
  /// All of them.
  std::vector<std::string> left() const;

  std::vector<bool> done;  // of each shard
  int64_t num_done = 0;
  std::vector<LeftFile> temporary;
};

}  // namespace infer
