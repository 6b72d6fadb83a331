#include "infer/commands/embed/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "engine/checks.h"
#include "engine/team.h"
#include "infer/cli/terminal.h"
#include "infer/commands/embed/saved_rows.h"
#include "infer/render/json_text.h"
#include "phasor/errors.h"
#include "phasor/quantize.h"

namespace infer {
namespace {

/// So many times the lines that are asked for are found by bits, or by vectors that are to be
/// compared again, and then compared by finer ones.
constexpr int64_t kRescored = 10;

/// The rows of the smallest Hamming distances, of equal ones the first.
class NearestBits {
 public:
  explicit NearestBits(int64_t most) : most_(static_cast<size_t>(most)) {}

  void add(int64_t distance, int64_t row) {
    if (found_.size() >= 2 * most_ + 1024) shrink();
    if (std::pair(distance, row) < bound_) found_.emplace_back(distance, row);
  }
  void add(const NearestBits& others) {
    for (const auto& [distance, row] : others.found_) add(distance, row);
  }
  /// Their numbers, from 0.
  std::vector<int64_t> rows() {
    shrink();
    std::vector<int64_t> rows;
    for (const auto& [distance, row] : found_) rows.push_back(row);
    return rows;
  }

 private:
  void shrink() {
    if (found_.size() <= most_) return;
    std::ranges::nth_element(found_, found_.begin() + static_cast<std::ptrdiff_t>(most_) - 1);
    bound_ = found_[most_ - 1];
    found_.resize(most_);
  }

  size_t most_;
  std::vector<std::pair<int64_t, int64_t>> found_;
  std::pair<int64_t, int64_t> bound_ = {std::numeric_limits<int64_t>::max(), 0};
};

/// Calls `search` for blocks of rows, on several threads.
void for_each_block(int64_t rows, int threads,
                    const std::function<void(int64_t first, int64_t end)>& search) {
  constexpr int64_t kBlock = 1024;
  phasor::internal::parallel_for(
      (rows + kBlock - 1) / kBlock, phasor::internal::team_size(threads),
      [&](int64_t block) { search(block * kBlock, std::min(rows, (block + 1) * kBlock)); });
}

/// What bits find for each query.
std::vector<NearestBits> find_by_bits(const SavedRows& saved, int64_t most, int threads,
                                      const std::vector<Query>& queries) {
  std::vector<std::vector<std::byte>> bits;
  for (const Query& query : queries) bits.push_back(saved.bits(query.vector));
  std::vector<NearestBits> nearest(queries.size(), NearestBits(most));
  std::mutex mutex;
  for_each_block(saved.rows(), threads, [&](int64_t first, int64_t end) {
    for (size_t q = 0; q < queries.size(); ++q) {
      NearestBits found(most);
      for (int64_t r = first; r < end; ++r)
        found.add(phasor::hamming_distance(bits[q], saved.bytes(r)), r);
      const std::lock_guard lock(mutex);
      nearest[q].add(found);
    }
  });
  return nearest;
}

/// What whole vectors find; how many rows were left out, which are not finite.
int64_t find_by_vectors(const SavedRows& saved, phasor::Similarity kind, int64_t most, int threads,
                        std::vector<Query>& queries) {
  std::atomic<int64_t> left_out = 0;
  std::mutex mutex;
  for_each_block(saved.rows(), threads, [&](int64_t first, int64_t end) {
    std::vector<Query> found;
    for (const Query& query : queries) found.push_back({.text = {}, .vector = query.vector});
    std::vector<float> row(saved.width());
    for (int64_t r = first; r < end; ++r) {
      saved.copy(r, row);
      phasor::internal::all_finite(row) ? add_line(row, r + 1, "", kind, most, found)
                                        : void(++left_out);
    }
    const std::lock_guard lock(mutex);
    for (size_t q = 0; q < queries.size(); ++q) {
      for (const RankedLine& line : found[q].nearest) add(line, most, queries[q].nearest);
    }
  });
  return left_out;
}

/// Of these rows the `most` that are nearest to a query. Returns how many were left out, which are
/// not finite.
int64_t compare_again(const SavedRows& saved, std::span<const int64_t> rows,
                      phasor::Similarity kind, int64_t most, Query& query) {
  std::vector<float> row(saved.width());
  int64_t left_out = 0;
  query.nearest.clear();
  for (const int64_t r : rows) {
    saved.copy(r, row);
    if (phasor::internal::all_finite(row))
      add({similarity(query.vector, row, kind), r + 1, ""}, most, query.nearest);
    else
      ++left_out;
  }
  return left_out;
}

}  // namespace

void add_line(std::span<const float> vector, int64_t number, const std::string& text,
              phasor::Similarity kind, int64_t most, std::vector<Query>& queries) {
  for (Query& query : queries) {
    add({similarity(query.vector, vector, kind), number, text}, most, query.nearest);
  }
}

void print_nearest(const std::vector<Query>& queries, phasor::Similarity kind, bool json,
                   bool has_texts) {
  Output output;
  for (const Query& query : queries) {
    nlohmann::ordered_json lines = nlohmann::ordered_json::array();
    std::string text =
        (&query == &queries.front() ? "" : "\n") + output.heading(printable(query.text)) + "\n";
    for (const RankedLine& line : query.nearest) {
      lines.push_back({{"line", line.number}, {std::string(to_string(kind)), line.key}});
      if (has_texts) lines.back()["text"] = line.text;
      const std::string label = fmt::format("  {:6.3f}  line {:<7} ", line.key, line.number);
      text += has_texts ? output.labelled(label, line.text) : trimmed(label);
    }
    output.write(json ? one_line({{"query", query.text}, {"nearest", lines}}) + "\n" : text);
  }
}

// Blocks are searched one by one, so that memory stays bounded. Which lines are the best, and in
// which order, depends on no order of the blocks, since of equal lines the first is the better.
void SavedVectors::search(const Embedder& embedder, int64_t most, int threads, bool quiet,
                          std::vector<Query>& queries) const {
  const SavedRows saved("--in", file, "embeddings", embedder.width());
  const Searcher searcher = {embedder.made_with(), embedder.width(),
                             embedder.model->text().document_prompt(), quiet};
  const std::optional<VectorRecord> record = checked_record("--in", file, saved.width(), searcher);
  const phasor::Similarity kind = embedder.similarity();
  std::optional<SavedRows> finer;
  if (!rescore.empty()) {
    finer.emplace("--rescore", rescore, "embeddings", embedder.width());
    finer->check("--rescore", kind);
    const auto other = checked_record("--rescore", rescore, finer->width(), searcher);
    if (finer->rows() != saved.rows() || (record && other && record->input != other->input)) {
      throw phasor::InvalidArgument(fmt::format(
          "--rescore: {} has the vectors of other lines than {}", rescore.string(), file.string()));
    }
  } else {
    saved.check("--in", kind);
  }
  std::vector<std::vector<int64_t>> found(queries.size());  // rows that are compared again
  if (saved.are_bits()) {
    std::vector<NearestBits> nearest = find_by_bits(saved, kRescored * most, threads, queries);
    for (size_t q = 0; q < queries.size(); ++q) found[q] = nearest[q].rows();
  } else {
    const int64_t kept = finer ? kRescored * most : most;
    note_left_out(file, quiet, find_by_vectors(saved, kind, kept, threads, queries));
    for (size_t q = 0; q < queries.size(); ++q)
      for (const RankedLine& line : queries[q].nearest) found[q].push_back(line.number - 1);
  }
  std::atomic<int64_t> left_out = 0;
  if (saved.are_bits() || finer) {
    phasor::internal::parallel_for(
        std::ssize(queries), phasor::internal::team_size(threads), [&](int64_t q) {
          left_out += compare_again(finer ? *finer : saved, found[q], kind, most, queries[q]);
        });
  }
  note_left_out(rescore, quiet, left_out);
  if (!texts.empty()) add_texts(texts, file, saved.rows(), record ? record->input : "", queries);
}

void add_texts(const std::string& texts, const std::filesystem::path& file, int64_t rows,
               const std::string& fingerprint, std::vector<Query>& queries) {
  std::map<int64_t, std::string> wanted;
  for (const Query& query : queries) {
    for (const RankedLine& line : query.nearest) wanted[line.number];
  }
  LineReader reader(texts, true);
  Fingerprint input;
  int64_t count = 0;
  while (std::optional<Line> line = reader.next()) {
    input.add_piece(line->text);
    if (const auto found = wanted.find(++count); found != wanted.end()) {
      found->second = std::move(line->text);
    }
  }
  if (count != rows || (!fingerprint.empty() && fingerprint != input.text())) {
    throw phasor::InvalidArgument(fmt::format(
        "--texts: the {} lines of {} are not those of which {} was made ({}); name the file that "
        "it was made of",
        count, texts, file.string(), rows));
  }
  for (Query& query : queries) {
    Ranking named;
    for (RankedLine line : query.nearest) {
      line.text = wanted[line.number];
      named.insert(std::move(line));
    }
    query.nearest = std::move(named);
  }
}

}  // namespace infer
