// Results list their arrays, and a text's share of a result is its rows of them; several kinds of
// vectors come from one run with the bits of each alone; prompts, roles, each token's last states.
#include <fmt/ranges.h>

#include "tests/support/bert_folder.h"
#include "tests/support/run_program.h"

namespace phasor {
namespace {

std::vector<VectorKind> all_kinds() {
  return parse_list<VectorKind>(fmt::format("{}", fmt::join(names<VectorKind>().all, ",")));
}

/// The array of this name; fails the test where there is none.
ResultArray array_named(const std::vector<ResultArray>& arrays, std::string_view name) {
  const auto found = std::ranges::find(arrays, name, &ResultArray::name);
  if (found != arrays.end()) return *found;
  ADD_FAILURE() << "there is no array " << name;
  return {};
}

bool have_same_values(const ResultArray& a, const ResultArray& b) {
  return std::visit(
      []<typename A, typename B>(std::span<A> one, std::span<B> other) {
        if constexpr (std::is_same_v<A, B>) return std::ranges::equal(one, other);
        return false;
      },
      a.values, b.values);
}

/// Each of `arrays` is also one of `all`.
void expect_arrays_in(const std::vector<ResultArray>& all, const std::vector<ResultArray>& arrays) {
  for (const ResultArray& array : arrays)
    EXPECT_TRUE(have_same_values(array, array_named(all, array.name))) << array.name;
}

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

/// Names, which are those of docs/c.md; sizes and reports; and that there are no other texts.
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

/// A model that makes all kinds, with three prompts.
class KindsTest : public testing::Test {
 protected:
  KindsTest() {
    folder_.make_bge();
    folder_.write("config_sentence_transformers.json",
                  R"({"prompts": {"query": "Q: ", "document": "D: ", "other": "Öl: "},
            "default_prompt_name": "other"})");
    encoder_.emplace(folder_.load(), EncoderOptions{.threads = 2});
  }

  TokenVectorFolder folder_;
  std::optional<Encoder> encoder_;
};

TEST_F(KindsTest, OneRunGivesTheSameBitsAsEachAlone) {
  std::vector<std::string> texts = {"Tom bit a dog.", "", "It rains."};
  for (int i = 0; i < 50; ++i) texts.push_back(repeat("a dog ", i % 31) + std::to_string(i));
  int64_t told = 0;
  const Vectors all =
      encoder_->embed(texts, {.kinds = all_kinds(),
                              .role = TextRole::kQuery,
                              .progress = [&](int64_t done, int64_t) { told = done; },
                              .offset_unit = OffsetUnit::kBytes});
  EXPECT_EQ(told, std::ssize(texts));
  std::map<unsigned, size_t> arrays;  // but the reports
  for (unsigned some = 1; some < 1U << all_kinds().size(); ++some) {
    TextOptions how = {.role = TextRole::kQuery};
    size_t of_each = 0;
    for (const VectorKind kind : all_kinds()) {
      const unsigned bit = some & 1U << static_cast<int>(kind);
      if (bit != 0) how.kinds.push_back(kind);
      of_each += arrays[bit];
    }
    if ((field("offset_unit").uses & some) != 0) how.offset_unit = OffsetUnit::kBytes;
    const Vectors made = encoder_->embed(texts, how);
    expect_arrays_in(all.arrays(), made.arrays());
    arrays[some] = made.arrays().size() - 3;
    EXPECT_TRUE(how.kinds.size() == 1 ? arrays[some] > 0 : arrays[some] == of_each) << some;
  }
  const Vectors repeated = encoder_->embed(
      texts, {.kinds = {VectorKind::kDense, VectorKind::kDense}, .role = TextRole::kQuery});
  expect_arrays_in(all.arrays(), repeated.arrays());
}

TEST_F(KindsTest, ThePromptIsTheOneThatIsNamedOrElseThatOfTheRole) {
  for (const VectorKind kind : all_kinds()) {
    const bool in_retrieval = kind == VectorKind::kSparse || kind == VectorKind::kTokens;
    const auto expect_prompt = [&](TextOptions how, const std::string& prompt) {
      SCOPED_TRACE(prompt);
      how.kinds = {kind};
      const Vectors made = encoder_->embed({"Tom bit a dog.", "It rains."}, how);
      const Vectors want =
          encoder_->embed({"Tom bit a dog.", "It rains."}, {.kinds = {kind}, .prompt = prompt});
      expect_arrays_in(want.arrays(), made.arrays());
    };
    expect_prompt({}, in_retrieval ? "D: " : "Öl: ");
    expect_prompt({.role = TextRole::kQuery}, "Q: ");
    expect_prompt({.role = TextRole::kDocument}, "D: ");
    expect_prompt({.prompt_name = "query"}, "Q: ");
    expect_prompt({.role = TextRole::kQuery, .prompt_name = "document"}, "D: ");
    expect_prompt({.role = TextRole::kQuery, .prompt = "Say: "}, "Say: ");
    expect_prompt({.role = TextRole::kQuery, .prompt = ""}, "");
  }
  EXPECT_INVALID(encoder_->embed("a", {.prompt_name = "queries"}),
                 {"\"queries\"", "document, other, query"});
  Encoder plain(Model::load("sinusoidal"));
  EXPECT_INVALID(plain.embed("a", {.prompt_name = "query"}), {"\"query\"", "it has none"});
}

/// States and vectors are those of a run of the text's ids.
void expect_states(Encoder& encoder, TextOptions how) {
  how.kinds = {VectorKind::kDense, VectorKind::kStates};
  how.pooling = {PoolingMode::kCls, PoolingMode::kMean};
  how.normalize = true;
  const std::vector<std::string> texts = {"Tom bit a dög and ran.", "", repeat("dog ", 200)};
  const Vectors made = encoder.embed(texts, how);
  const TokenRows& states = made.states;
  const Model& model = encoder.model();
  const auto overflow = how.overflow.value_or(Overflow::kTruncate);
  const bool truncates = overflow == Overflow::kTruncate, windows = overflow == Overflow::kWindow;
  RunOptions run = {.positions = how.positions, .overflow = overflow};
  if (windows) {  // as with a table of that length
    const int64_t rows = how.max_tokens > 0 ? how.max_tokens : 128;
    run.positions = Positions::table({rows, 128, model.position_vectors(rows)});
  }
  const std::string prompt = how.prompt.value_or("");
  const bool counts_bytes = how.offset_unit == OffsetUnit::kBytes;
  const int64_t length = prompt.empty() ? 0 : counts_bytes ? 5 : 4;
  for (int64_t i = 0; i < 3; ++i) {
    const Tokens tokens = model.tokenizer().encode(
        prompt + texts[i], {.max_tokens = windows                            ? 0
                                          : truncates && how.max_tokens == 0 ? 128
                                                                             : how.max_tokens,
                            .truncation_side = how.truncation_side,
                            .offset_unit = how.offset_unit.value_or(OffsetUnit::kNone)});
    EXPECT_EQ(made.reports[i].num_tokens, std::ssize(tokens.ids));
    EXPECT_EQ(made.reports[i].dropped_tokens, tokens.dropped);
    const auto begin = states.offsets[i], count = states.offsets[i + 1] - begin;
    EXPECT_TRUE(std::ranges::equal(std::span(states.ids).subspan(begin, count), tokens.ids));
    const Encoding encoding = encoder.encode_ids(tokens.ids, run);
    expect_same_bits(states[i], encoding.hidden, texts[i]);
    expect_same_bits(made[i], pool(encoding.hidden, 128, {.modes = how.pooling, .normalize = true}),
                     texts[i]);
    for (size_t t = 0; t < tokens.offsets.size(); ++t) {
      const TextSpan want = {std::max<int64_t>(tokens.offsets[t].begin - length, 0),
                             std::max<int64_t>(tokens.offsets[t].end - length, 0)};
      EXPECT_EQ(states.spans[begin + static_cast<int64_t>(t)], want) << texts[i] << " " << t;
    }
  }
  EXPECT_EQ(states.spans.empty(), !how.offset_unit);
}

TEST(StatesTest, TheyAreThoseOfTheTextsIdsWithTheirPlaces) {
  for (const char* const name : {"learned", "sinusoidal"}) {
    Encoder encoder(Model::load(name));
    for (const TextOptions& how : std::vector<TextOptions>{
             {},
             {.prompt = "Öl: ", .offset_unit = OffsetUnit::kCharacters},
             {.prompt = "Öl: ",
             .max_tokens = 8,
             .truncation_side = TruncationSide::kRight,
             .offset_unit = OffsetUnit::kBytes},
             {.max_tokens = 7, .truncation_side = TruncationSide::kLeft},
             {.positions = Positions::none()},
             {.overflow = Overflow::kClamp},
             {.max_tokens = 150, .overflow = Overflow::kInterpolate},
             {.overflow = Overflow::kWindow, .offset_unit = OffsetUnit::kBytes},
             {.max_tokens = 50, .overflow = Overflow::kWindow}})
      expect_states(encoder, how);
    EXPECT_THROW(encoder.embed("a b c", {.max_tokens = 1}), InvalidArgument);
  }
}

}  // namespace
}  // namespace phasor
