// Results list their arrays, and a text's share of a result is its rows of them.
#include "tests/support/arrays.h"
#include "tests/support/bert_folder.h"
#include "tests/support/bundled_folder.h"
#include "tests/support/run_program.h"

namespace phasor {
namespace {

using Rows = ResultArray::Rows;
using Numbers = std::vector<double>;

/// The arrays' names in the rows of a function, from its name to the next one's, in docs/c.md.
std::set<std::string> documented(const std::string& function) {
  const std::string page = read_text_file(PHASOR_SOURCE_DIR "/docs/c.md");
  const size_t begin = page.find("\n| " + function) + 1;
  const std::string rows = page.substr(begin, page.find("\n| `phasor_", begin) - begin);
  std::set<std::string> names;
  for (size_t at = rows.find('"'); at != rows.npos;) {
    const size_t end = rows.find('"', at + 1);
    names.insert(rows.substr(at + 1, end - at - 1));
    at = rows.find('"', end + 1);
  }
  return names;
}

/// Names, which are those of docs/c.md; sizes and reports; and that there is no text but those that
/// there are.
template <typename Result>
void expect_arrays(const Result& result, const std::vector<std::string>& texts,
                   const std::string& function) {
  const std::vector<ResultArray> arrays = result.arrays();
  const auto count = std::ssize(texts);
  std::set<std::string> names, wanted = documented("`" + function + "`");
  wanted.merge(documented("these four also"));
  EXPECT_EQ(result.size(), count);
  for (const ResultArray& array : arrays) {
    SCOPED_TRACE(array.name);
    EXPECT_TRUE(names.insert(std::string(array.name)).second);
    int64_t rows = array.rows == Rows::kTexts ? count : count + 1;
    EXPECT_EQ(array.offsets.empty(), array.rows != Rows::kItems);
    if (array.rows == Rows::kItems) {
      ASSERT_EQ(std::ssize(array.offsets), count + 1);
      EXPECT_EQ(array.offsets.front(), 0);
      EXPECT_TRUE(std::ranges::is_sorted(array.offsets));
      EXPECT_TRUE(std::ranges::any_of(arrays, [&](const ResultArray& other) {
        return other.rows == Rows::kOffsets && have_same_values(other, {"", array.offsets});
      }));
      rows = array.offsets.back();
    }
    const auto size = std::visit([](const auto& all) { return std::ssize(all); }, array.values);
    if (array.rows != Rows::kCall) {
      EXPECT_EQ(size, rows * std::max<int64_t>(array.columns, 1));
    }
  }
  EXPECT_EQ(names, wanted);
  for (const int64_t i : {int64_t{-1}, count}) {
    EXPECT_THROW(result.reports[i], std::out_of_range);
    if constexpr (requires { result[i]; }) {
      EXPECT_THROW(result[i], std::out_of_range);
    }
  }
}

/// The rows of text i of a array, or their numbers.
template <typename T>
std::vector<T> rows_of(const std::vector<ResultArray>& arrays, std::string_view name, int64_t i) {
  const ResultArray array = array_named(arrays, name);
  const bool items = array.rows == Rows::kItems;
  const int64_t columns = std::max<int64_t>(array.columns, 1);
  const int64_t begin = items ? array.offsets[i] : i, end = items ? array.offsets[i + 1] : i + 1;
  return std::visit(
      [&](const auto& all) -> std::vector<T> {
        const auto rows = all.subspan(begin * columns, (end - begin) * columns);
        if constexpr (std::is_convertible_v<decltype(rows[0]), T>) {
          return {rows.begin(), rows.end()};
        }
        return {};
      },
      array.values);
}
Numbers numbers(const std::vector<ResultArray>& arrays, std::string_view name, int64_t i) {
  return rows_of<double>(arrays, name, i);
}
Numbers numbers(const auto& span) { return {span.begin(), span.end()}; }

const std::vector<std::string> kInputs[] = {{}, {"Tom bit a dog.", "", "It \xff rains, it pours."}};

TEST(ResultsTest, Vectors) {
  const TokenVectorFolder folder;
  folder.make_bge();
  Encoder encoder(folder.load());
  for (const auto& texts : kInputs) {
    const Vectors made = encoder.embed(
        texts, {.kinds = all_kinds(), .max_tokens = 7, .offset_unit = OffsetUnit::kBytes});
    expect_arrays(made, texts, "phasor_embed");
    const std::vector<ResultArray> arrays = made.arrays();
    EXPECT_EQ(array_named(arrays, "token_vectors").columns, TokenVectorFolder::kWidth);
    EXPECT_EQ(array_named(arrays, "state_vectors").columns, 128);
    for (int64_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(numbers(made[i]), numbers(arrays, "dense", i));
      EXPECT_EQ(numbers(made.sparse[i].values), numbers(arrays, "sparse_values", i));
      EXPECT_EQ(numbers(made.sparse[i].indices), numbers(arrays, "sparse_indices", i));
      EXPECT_EQ(numbers(made.tokens[i]), numbers(arrays, "token_vectors", i));
      EXPECT_EQ(numbers(made.states[i]), numbers(arrays, "state_vectors", i));
      const Numbers spans = numbers(arrays, "state_spans", i);
      for (size_t t = 0; t < spans.size(); ++t) {
        const TextSpan& span = made.states.spans[made.states.offsets[i] + t / 2];
        EXPECT_EQ(spans[t], t % 2 == 0 ? span.begin : span.end);
      }
      EXPECT_EQ(made.reports[i].num_tokens, numbers(arrays, "num_tokens", i)[0]);
      EXPECT_EQ(made.reports[i].dropped_tokens, numbers(arrays, "dropped_tokens", i)[0]);
      EXPECT_EQ(made.reports[i].invalid_bytes, numbers(arrays, "invalid_bytes", i)[0]);
    }
    EXPECT_THROW(made.sparse[made.size()], std::out_of_range);
    EXPECT_THROW(made.tokens[-1], std::out_of_range);
  }
}

TEST(ResultsTest, ClassificationAndRanking) {
  const BertFolder folder({"no", "yes"}), ranker({"relevant"});
  Encoder encoder(Model::load(folder.path())), ranks(Model::load(ranker.path()));
  for (const auto& texts : kInputs) {
    const Classification made = encoder.classify(texts);
    expect_arrays(made, texts, "phasor_classify");
    EXPECT_EQ(made.labels, (std::vector<std::string>{"no", "yes"}));
    for (int64_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(numbers(made[i].logits), numbers(made.arrays(), "logits", i));
      EXPECT_EQ(numbers(made[i].probabilities), numbers(made.arrays(), "probabilities", i));
    }
    const Ranking ranking = ranks.rank("a", texts);
    expect_arrays(ranking, texts, "phasor_rank");
    EXPECT_EQ(array_named(ranking.arrays(), "order").rows, Rows::kCall);
    EXPECT_EQ(ranking.order.size(), texts.size());
  }
}

TEST(ResultsTest, Labels) {
  const BertFolder folder({"B-X", "I-X"}, 9, true);
  Encoder encoder(Model::load(folder.path()));
  for (const auto& texts : kInputs) {
    const Labels made = encoder.label(texts);
    expect_arrays(made, texts, "phasor_label");
    EXPECT_EQ(made.labels.empty(), texts.empty());
    for (int64_t i = 0; i < made.size(); ++i) {
      std::vector<std::string> labels;
      Numbers scores, spans, tokens;
      for (const LabelledSpan& each : made[i]) {
        labels.emplace_back(each.label);
        scores.push_back(each.score);
        for (const int64_t place : {each.span.begin, each.span.end})
          spans.push_back(static_cast<double>(place));
        for (const int64_t place : {each.tokens.begin, each.tokens.end})
          tokens.push_back(static_cast<double>(place));
      }
      const std::vector<ResultArray> arrays = made.arrays();
      EXPECT_EQ(labels, rows_of<std::string>(arrays, "labels", i));
      EXPECT_EQ(scores, numbers(arrays, "scores", i));
      EXPECT_EQ(spans, numbers(arrays, "spans", i));
      EXPECT_EQ(tokens, numbers(arrays, "tokens", i));
    }
  }
}

}  // namespace
}  // namespace phasor
