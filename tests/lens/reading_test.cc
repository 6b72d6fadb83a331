// The reading curve: each of its runs, made in another way.
#include "lens/study/masked.h"
#include "lens/study/text.h"
#include "phasor/lens/causes.h"
#include "tests/lens/observing.h"
#include "tests/support/bert_folder.h"

namespace phasor::internal {
namespace {

std::vector<std::string> read_lines() { return {all_lines().begin(), all_lines().begin() + 8}; }

std::vector<MaskedText> masked_lines(const Model& model) {
  return masked_texts(model, tokenize_corpus(model, read_lines()), 0, 1);
}

/// A table whose row is the mean over the words at each word, and the model's own elsewhere.
Positions mean_at_words(const Model& model, const std::vector<int32_t>& ids) {
  const auto length = std::ssize(ids);
  const int64_t width = model.config().d_model;
  std::vector<float> rows = model.position_vectors(length);
  const std::vector<int64_t> words = text_places(model, ids);
  for (int64_t c = 0; c < width; ++c) {
    double mean = 0;
    for (const int64_t t : words) mean += rows[t * width + c] / static_cast<double>(words.size());
    for (const int64_t t : words) rows[t * width + c] = static_cast<float>(mean);
  }
  return Positions::table({.rows = length, .d_model = width, .values = rows});
}

// Visible to no attention: the words have one row. To the first: so, with that attention's output
// of the run as it is.
TEST(ReadingTest, AddedVectorsAreTakenAwayOnceTheyAreRead) {
  for (const char* const name : {"sinusoidal", "learned"}) {
    Encoder encoder = encoder_of(name);
    MaskedScore with, none, first;
    int64_t number = 0;
    for (const MaskedText& text : masked_lines(encoder.model())) {
      Trace trace{Hook::kAttnOut};
      encoder.encode_ids(text.token_ids, {.observer = &trace});
      const Positions without = mean_at_words(encoder.model(), text.token_ids);
      Patch patch(Hook::kAttnOut, 0, trace);
      const auto add = [&](MaskedScore& score, const RunOptions& options) {
        add_scores(encoder, options, {&text, 1}, number, {&score, 1});
      };
      add(with, {});
      add(none, {.positions = without});
      add(first, {.observer = &patch, .positions = without});
      ++number;
    }
    const double whole = none.loss().mean - with.loss().mean,
                 left = first.loss().mean - with.loss().mean;
    const Observed run =
        observe_masked({run_of(encoder)}, read_lines(), read_lines(), {"reading"}).at(0);
    const Table& table = run.tables.at("reading");
    ASSERT_EQ(table.rows.size(), 7u);
    EXPECT_NEAR(table.rows[0].cells[1], whole, 2e-4) << name;
    EXPECT_NEAR(table.rows[1].cells[1], left, 2e-4) << name;
    EXPECT_EQ(table.rows[0].cells[0], 1);
    EXPECT_NEAR(table.rows[1].cells[0], left / whole, 2e-4);
    EXPECT_LT(table.rows[1].intervals[0].low, left / whole);
    EXPECT_GT(table.rows[1].intervals[0].high, left / whole);
    double depth = 0;
    for (int l = 0; l < 6; ++l) depth += table.rows[l].cells[0];
    EXPECT_TRUE(contains(table.note, fmt::format("Mean depth {:.2f} [", depth))) << table.note;
  }
}

// Where nothing is added, the states after l layers have all that l attentions have read.
TEST(ReadingTest, WhatActsWithinAttentionIsTakenAwayFromTheLaterOnes) {
  for (const char* const name : {"rotary", "relative", "alibi"}) {
    Encoder encoder = encoder_of(name);
    const std::vector<MaskedText> texts = masked_lines(encoder.model());
    std::vector<std::vector<int32_t>> ids;
    for (const MaskedText& text : texts) ids.push_back(text.token_ids);
    Trace trace{Hook::kResidPre};
    encoder.encode_ids(ids, {.observer = &trace});
    const auto loss_of = [&](const RunOptions& options) {
      MaskedScore score;
      add_scores(encoder, options, texts, 0, {&score, 1});
      return score.loss().mean;
    };
    const Observed run =
        observe_masked({run_of(encoder)}, read_lines(), read_lines(), {"reading"}).at(0);
    const std::vector<Row>& rows = run.tables.at("reading").rows;
    for (int64_t l = 0; l < 6; ++l) {
      Patch patch(Hook::kResidPre, l, trace);
      const double rise =
          loss_of({.observer = &patch, .positions = Positions().averaged()}) - loss_of({});
      EXPECT_NEAR(rows[l].cells[1], rise, 2e-4) << name << l;
    }
    EXPECT_NEAR(rows[6].cells[1], 0, 1e-5);
  }
}

// Without a head that predicts words, and with a norm on the sum: the vector passes that norm at
// the run's scale, and is subtracted from what attention has been added to.
TEST(ReadingTest, StatesAreComparedWhereThereIsNoHead) {
  const BertFolder bert({});
  Encoder encoder(Model::load(bert.path()));
  const Model& model = encoder.model();
  const std::vector<std::string> lines = {"a b c d e f", "f e a b", "c"};
  const Observed run = observe_masked({run_of(encoder)}, lines, lines, {"reading"}).at(0);
  ASSERT_TRUE(run.tables.contains("reading")) << why_missing(run, "reading");
  const std::vector<Row>& rows = run.tables.at("reading").rows;
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(contains(run.tables.at("reading").note, "cosine"));
  const int64_t C = model.config().d_model;
  const std::vector<float> scale = model.weights().embedding_norm.weight.to_float();
  std::vector<std::vector<double>> clean, changed;  // of each word
  std::vector<double> mean(C);
  for (const std::string& line : lines) {
    const std::vector<int32_t> ids = model.tokenizer().encode(line).ids;
    const auto T = std::ssize(ids);
    Trace trace{Hook::kTokenEmbed, Hook::kPosEmbed, Hook::kTokenTypeEmbed};
    encoder.encode_ids(ids, {.observer = &trace});
    const auto rows_of = [&](Hook hook) { return trace.at(hook, -1, 0).values; };
    const std::vector<float> token = rows_of(Hook::kTokenEmbed),
                             position = rows_of(Hook::kPosEmbed),
                             type = rows_of(Hook::kTokenTypeEmbed);
    std::vector<float> path(T * C);
    for (int64_t t = 1; t < T - 1; ++t) {
      std::vector<double> sum(C), vector(C);
      double of_sum = 0, of_vector = 0, squares = 0;
      for (int64_t c = 0; c < C; ++c) {
        sum[c] = double{token[t * C + c]} + position[t * C + c] + type[t * C + c];
        vector[c] = position[t * C + c];
        for (int64_t w = 1; w < T - 1; ++w)
          vector[c] -= position[w * C + c] / static_cast<double>(T - 2);
        of_sum += sum[c] / static_cast<double>(C);
        of_vector += vector[c] / static_cast<double>(C);
      }
      for (const double x : sum) squares += (x - of_sum) * (x - of_sum);
      const double width = std::sqrt(squares / static_cast<double>(C) + model.config().norm_eps);
      for (int64_t c = 0; c < C; ++c)
        path[t * C + c] = static_cast<float>((vector[c] - of_vector) / width * scale[c]);
    }
    Subtraction subtraction(Hook::kResidMid, 0, {path});
    const Encoding before = encoder.encode_ids(ids);
    const Encoding after = encoder.encode_ids(ids, {.observer = &subtraction});
    for (int64_t t = 1; t < T - 1; ++t) {
      const auto of = [&](const Encoding& encoding) {
        const auto row = encoding.hidden(0).subspan(t * C, C);
        return std::vector<double>(row.begin(), row.end());
      };
      clean.push_back(of(before));
      changed.push_back(of(after));
      for (int64_t c = 0; c < C; ++c) mean[c] += clean.back()[c];
    }
  }
  double total = 0;
  for (size_t word = 0; word < clean.size(); ++word) {
    double ab = 0, aa = 0, bb = 0;
    for (int64_t c = 0; c < C; ++c) {
      const double middle = mean[c] / static_cast<double>(clean.size());
      const double a = clean[word][c] - middle, b = changed[word][c] - middle;
      ab += a * b, aa += a * a, bb += b * b;
    }
    total += 1 - ab / std::sqrt(aa * bb);
  }
  EXPECT_NEAR(rows[1].cells[1], total / static_cast<double>(clean.size()), 1e-6);
  EXPECT_GT(rows[0].cells[1], 0);
}

// The BERT's table has 32 rows.
TEST(ReadingTest, LongTextsAreCutOrSaidToRunInWindows) {
  const BertFolder bert({});
  Encoder encoder(Model::load(bert.path()));
  const std::vector<std::string> longer = {repeat("a b c d ", 20), "f e a b"};
  const std::vector<std::string> cut = {repeat("a b c d ", 7) + "a b", "f e a b"};
  const auto observed = [&](Overflow overflow, const std::vector<std::string>& lines) {
    const lens::Run run = run_of(encoder, "", {.overflow = overflow});
    return observe_masked({run}, lines, lines, {"reading"}).at(0);
  };
  const Observed truncated = observed(Overflow::kTruncate, longer);
  const std::vector<Row>& rows = truncated.tables.at("reading").rows;
  const Observed short_ones = observed(Overflow::kError, cut);
  for (size_t l = 0; l < rows.size(); ++l)
    EXPECT_EQ(rows[l].cells, short_ones.tables.at("reading").rows[l].cells);
  EXPECT_EQ(why_missing(observed(Overflow::kWindow, longer), "reading"),
            "a text was run in overlapping windows");
  EXPECT_TRUE(observed(Overflow::kClamp, longer).tables.contains("reading"));
}

TEST(ReadingTest, WithoutPositionsThereIsNothingToRead) {
  Encoder none = encoder_of("none");
  const std::vector<std::string> lines = read_lines();
  EXPECT_EQ(why_missing(observe_masked({run_of(none)}, lines, lines, {"reading"}).at(0), "reading"),
            "without positions nothing is lost");
  Encoder encoder = encoder_of();
  const lens::Run cut = run_of(encoder, "", {.cut_residuals = {{.layer = 1}}});
  EXPECT_EQ(why_missing(observe_masked({cut}, lines, lines, {"reading"}).at(0), "reading"),
            "a residual connection is cut");
}

}  // namespace
}  // namespace phasor::internal
