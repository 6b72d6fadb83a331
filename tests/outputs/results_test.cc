// Results list their parts, and a text's share of a result is its rows of them.
#include "tests/support/bert_folder.h"
#include "tests/support/parts.h"
#include "tests/support/token_vector_folder.h"

namespace phasor {
namespace {

using Rows = Part::Rows;

int64_t size_of(const Part& part) {
  return std::visit([](const auto& values) { return std::ssize(values); }, part.values);
}

/// The rows of text i.
template <typename T>
std::vector<T> rows_of(const std::vector<Part>& parts, std::string_view name, int64_t i) {
  const Part part = part_of(parts, name);
  const bool items = part.rows == Rows::kItems;
  const int64_t columns = std::max<int64_t>(part.columns, 1);
  const int64_t begin = items ? part.offsets[i] : i, end = items ? part.offsets[i + 1] : i + 1;
  const auto rows =
      std::get<std::span<const T>>(part.values).subspan(begin * columns, (end - begin) * columns);
  return {rows.begin(), rows.end()};
}

template <typename T>
std::vector<T> copy_of(std::span<const T> values) {
  return {values.begin(), values.end()};
}

/// Names, sizes and reports; and that there is no text but those that there are.
template <typename Result>
void expect_parts(const Result& result, int64_t count, std::vector<std::string_view> names) {
  const std::vector<Part> parts = result.parts();
  names.insert(names.end(), {"num_tokens", "dropped_tokens", "invalid_bytes"});
  EXPECT_TRUE(std::ranges::equal(parts, names, {}, &Part::name));
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(result.size(), count);
  for (const Part& part : parts) {
    SCOPED_TRACE(part.name);
    const int64_t columns = std::max<int64_t>(part.columns, 1);
    if (part.rows == Rows::kTexts || part.rows == Rows::kOffsets) {
      EXPECT_EQ(size_of(part), part.rows == Rows::kTexts ? count * columns : count + 1);
    }
    EXPECT_EQ(part.offsets.empty(), part.rows != Rows::kItems);
    if (part.rows == Rows::kItems) {
      ASSERT_EQ(std::ssize(part.offsets), count + 1);
      EXPECT_EQ(part.offsets.front(), 0);
      EXPECT_TRUE(std::ranges::is_sorted(part.offsets));
      EXPECT_EQ(size_of(part), part.offsets.back() * columns);
      EXPECT_TRUE(std::ranges::any_of(parts, [&](const Part& other) {
        return other.rows == Rows::kOffsets &&
               std::get<std::span<const int64_t>>(other.values).data() == part.offsets.data();
      }));
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    const TextReport report = result.reports[i];
    EXPECT_EQ(report.num_tokens, rows_of<int64_t>(parts, "num_tokens", i)[0]);
    EXPECT_EQ(report.dropped_tokens, rows_of<int64_t>(parts, "dropped_tokens", i)[0]);
    EXPECT_EQ(report.invalid_bytes, rows_of<int64_t>(parts, "invalid_bytes", i)[0]);
  }
  for (const int64_t i : {int64_t{-1}, count}) {
    EXPECT_THROW(result.reports[i], std::out_of_range);
    if constexpr (requires { result[i]; }) {
      EXPECT_THROW(result[i], std::out_of_range);
    }
  }
}

const std::vector<std::string> kTextsOf[] = {{},
                                             {"Tom bit a dog.", "", "It \xff rains, it pours."}};

TEST(ResultsTest, Vectors) {
  const TokenVectorFolder folder;
  folder.make_bge();
  Encoder encoder(folder.load());
  for (const auto& texts : kTextsOf) {
    const auto count = std::ssize(texts);
    TextOptions how;
    how.kinds = {VectorKind::kDense, VectorKind::kSparse, VectorKind::kTokens, VectorKind::kStates};
    how.offset_unit = OffsetUnit::kBytes;
    how.max_tokens = 7;
    const Vectors made = encoder.embed(texts, how);
    const std::vector<Part> parts = made.parts();
    if (texts.empty()) {
      expect_parts(made, 0,
                   {"sparse_offsets", "sparse_indices", "sparse_values", "token_offsets",
                    "token_vectors", "token_ids", "state_offsets", "state_vectors", "state_ids"});
      continue;
    }
    expect_parts(made, count,
                 {"dense", "sparse_offsets", "sparse_indices", "sparse_values", "token_offsets",
                  "token_vectors", "token_ids", "token_spans", "state_offsets", "state_vectors",
                  "state_ids", "state_spans"});
    EXPECT_EQ(part_of(parts, "token_vectors").columns, TokenVectorFolder::kWidth);
    EXPECT_EQ(part_of(parts, "state_vectors").columns, 128);
    EXPECT_EQ(part_of(parts, "state_spans").columns, 2);
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(copy_of(made[i]), rows_of<float>(parts, "dense", i));
      EXPECT_EQ(copy_of(made.sparse[i].values), rows_of<float>(parts, "sparse_values", i));
      EXPECT_EQ(copy_of(made.sparse[i].indices), rows_of<int32_t>(parts, "sparse_indices", i));
      EXPECT_EQ(copy_of(made.tokens[i]), rows_of<float>(parts, "token_vectors", i));
      EXPECT_EQ(copy_of(made.states[i]), rows_of<float>(parts, "state_vectors", i));
      const std::vector<int64_t> spans = rows_of<int64_t>(parts, "state_spans", i);
      for (size_t t = 0; t < spans.size(); t += 2) {
        const TextSpan span = made.states.spans[made.states.offsets[i] + t / 2];
        EXPECT_EQ(span, (TextSpan{spans[t], spans[t + 1]}));
      }
    }
    for (const int64_t i : {int64_t{-1}, count}) {
      EXPECT_THROW(made.sparse[i], std::out_of_range);
      EXPECT_THROW(made.tokens[i], std::out_of_range);
    }
  }
}

TEST(ResultsTest, ClassificationAndRanking) {
  const BertFolder folder({"no", "yes"}), ranker({"relevant"});
  Encoder encoder(Model::load(folder.path())), ranks(Model::load(ranker.path()));
  for (const auto& texts : kTextsOf) {
    const auto count = std::ssize(texts);
    const Classification made = encoder.classify(texts);
    const std::vector<Part> parts = made.parts();
    expect_parts(made, count, {"labels", "logits", "probabilities"});
    EXPECT_EQ(made.labels, (std::vector<std::string>{"no", "yes"}));
    EXPECT_EQ(part_of(parts, "labels").rows, Rows::kCall);
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(copy_of(made[i].logits), rows_of<float>(parts, "logits", i));
      EXPECT_EQ(copy_of(made[i].probabilities), rows_of<float>(parts, "probabilities", i));
    }
    const Ranking ranking = ranks.rank("a", texts);
    expect_parts(ranking, count, {"order", "logits", "scores"});
    EXPECT_EQ(part_of(ranking.parts(), "order").rows, Rows::kCall);
    EXPECT_EQ(std::ssize(ranking.order), count);
  }
}

TEST(ResultsTest, Labels) {
  const BertFolder folder({"B-X", "I-X"}, 9, true);
  Encoder encoder(Model::load(folder.path()));
  for (const auto& texts : kTextsOf) {
    const Labels made = encoder.label(texts);
    const std::vector<Part> parts = made.parts();
    expect_parts(made, std::ssize(texts), {"offsets", "labels", "scores", "spans", "tokens"});
    for (int64_t i = 0; i < made.size(); ++i) {
      const auto labels = rows_of<std::string>(parts, "labels", i);
      const auto scores = rows_of<float>(parts, "scores", i);
      const auto spans = rows_of<int64_t>(parts, "spans", i);
      const auto tokens = rows_of<int64_t>(parts, "tokens", i);
      const std::vector<LabelledSpan> all = made[i];
      ASSERT_EQ(all.size(), labels.size());
      for (size_t k = 0; k < all.size(); ++k) {
        EXPECT_EQ(all[k].label, labels[k]);
        EXPECT_EQ(all[k].score, scores[k]);
        EXPECT_EQ(all[k].span, (TextSpan{spans[2 * k], spans[2 * k + 1]}));
        EXPECT_EQ(all[k].tokens, (TextSpan{tokens[2 * k], tokens[2 * k + 1]}));
      }
    }
    EXPECT_EQ(made.labels.empty(), texts.empty());
  }
}

}  // namespace
}  // namespace phasor
