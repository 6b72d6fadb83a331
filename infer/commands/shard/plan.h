// The plan of a corpus in shards. Whoever has the folder, the model and the corpus can make any
// shard, and two attempts at one write the same bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "infer/cli/line_reader.h"
#include "infer/commands/embed/embed_file.h"
#include "infer/commands/embed/embedder.h"

namespace infer {

/// Where a shard's lines begin, and their fingerprint.
struct ShardLines {
  Place begin;
  uint64_t fingerprint = 0;
};

/// What FOLDER/plan.json holds, and the index that it names, an int64 matrix [shards, 4] in NumPy's
/// format: the number of the input, the place in it in bytes and in lines, the fingerprint. Shards
/// count from 0.
struct Plan {
  struct Input {
    std::string file;  // absolute
    int64_t bytes = 0;
    int64_t lines = 0;
  };

  std::filesystem::path folder;
  VectorOptions options;
  VectorFormat format;
  std::vector<Input> inputs;
  int64_t lines = 0;
  std::string input;  // fingerprint of the lines
  int64_t lines_per_shard = 1;
  std::vector<ShardLines> shards;
  std::string id;  // the fingerprint of plan.json

  /// Makes the index and then plan.json. Returns false if the same plan is already there. Throws
  /// InvalidArgument if the folder holds another plan or other files.
  bool write();
  /// Throws InvalidArgument.
  static Plan read(const std::filesystem::path& folder);

  int64_t size() const { return std::ssize(shards); }
  int64_t first_line(int64_t shard) const { return shard * lines_per_shard; }  // from 0
  int64_t lines_of(int64_t shard) const;
  std::string input_of(int64_t shard) const;  // fingerprint of its lines
  std::string header_of(int64_t shard) const;
  /// Of the shard's file; nothing for .jsonl.
  std::optional<int64_t> bytes_of(int64_t shard) const;
  /// FOLDER/000/shard-000007.npy; the folder 000 holds the first thousand shards.
  std::filesystem::path file_of(int64_t shard) const;
  std::filesystem::path record_of(int64_t shard) const;  // likewise, shard-000007.done
  std::filesystem::path group_of(int64_t shard) const;
  static constexpr int64_t kGroupSize = 1000;
  std::vector<std::string> files() const;  // the inputs'
};

}  // namespace infer
