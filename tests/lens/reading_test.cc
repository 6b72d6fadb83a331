// The reading curve: each of its runs, made in another way.

#include <cmath>
#include <iterator>
#include <numbers>

#include "lens/causes.h"
#include "lens/order.h"
#include "lens/study/masked_run.h"
#include "lens/study/text.h"
#include "tests/lens/observing.h"
#include "tests/support/bert_folder.h"
#include "tests/support/encoder_cases.h"

namespace phasor::internal {
namespace {

/// Eight lines with so many draws of their masks.
std::vector<MaskedText> masked_lines(const Model& model, int64_t draws) {
  std::vector<MaskedText> texts;
  for (int64_t draw = 1; draw <= draws; ++draw)
    std::ranges::move(masked_texts(model, tokenize_corpus(model, eight_lines()), 0, draw),
                      std::back_inserter(texts));
  return texts;
}

constexpr int64_t kDrawsOfReading = 5;

/// A table whose row at each word is the mean over the words, or 0, and the model's own elsewhere.
Positions mean_at_words(const Model& model, const std::vector<int32_t>& ids, bool zero = false) {
  const auto length = std::ssize(ids);
  const int64_t width = model.config().d_model;
  std::vector<float> rows = model.position_vectors(length);
  const std::vector<int64_t> words = text_places(model, ids);
  for (int64_t c = 0; c < width; ++c) {
    double mean = 0;
    for (const int64_t t : words) mean += rows[t * width + c] / static_cast<double>(words.size());
    for (const int64_t t : words) rows[t * width + c] = zero ? 0 : static_cast<float>(mean);
  }
  return Positions::table({.rows = length, .d_model = width, .values = rows});
}

/// The mean loss of each text's masks, run by itself with options that it chooses, as the mean over
/// all masks.
template <typename Choose>
double loss_of(Encoder& encoder, const Choose& choose, int64_t draws = kDrawsOfReading) {
  MaskedScore score;
  for (const MaskedText& text : masked_lines(encoder.model(), draws))
    choose(text, [&](const RunOptions& options) {
      add_scores(encoder, options, {&text, 1}, {&score, 1});
    });
  return score.loss().mean;
}

/// A run with the mean row at the words, or one with positions, that gets an attention's output of
/// the other.
double loss_with_attention(Encoder& encoder, int64_t layer, bool has_positions) {
  return loss_of(encoder, [&](const MaskedText& text, const auto& run) {
    const Positions without = mean_at_words(encoder.model(), text.token_ids);
    const Trace trace = recorded(encoder, text.token_ids, {Hook::kAttnOut},
                                 {.positions = has_positions ? without : Positions()});
    Patch patch(Hook::kAttnOut, layer, trace);
    run({.observer = &patch, .positions = has_positions ? Positions() : without});
  });
}

// In a model whose positions are added and not normed, attention 1's output has all that it has
// read: with it alone, positions are visible to that attention alone; without it, to the later
// ones.
TEST(ReadingTest, AddedVectorsAreTakenAwayOnceTheyAreRead) {
  const TempFolder folder;  // of a model that has rotations as well
  const std::string both = folder.path() / "both";
  std::filesystem::copy(bundled_model("rotary"), both, std::filesystem::copy_options::recursive);
  auto config = nlohmann::json::parse(read_text_file(both + "/config.json"));
  config["position"].update({{"kind", "sinusoidal"}, {"layout", "paper"}, {"base", 10000}});
  folder.write("both/config.json", config.dump());
  for (const std::string& name : {std::string("sinusoidal"), std::string("learned"), both}) {
    Encoder encoder(Model::load(name));
    const double with = loss_of(encoder, [](const MaskedText&, const auto& run) { run({}); });
    const double none = loss_of(encoder, [&](const MaskedText& text, const auto& run) {
      run({.positions = mean_at_words(encoder.model(), text.token_ids)});
    });
    const auto left = [&](double loss) { return (loss - with) / (none - with); };
    const Observed observed = observe_masked(encoder, eight_lines(), {"reading"});
    const Table& table = observed.tables.at("reading");
    ASSERT_EQ(table.rows.size(), 7u);
    const auto of = [&](int64_t l, const char* column) {
      return number(observed, "reading", l, column);
    };
    for (const char* const all : {"left", "later"}) EXPECT_EQ(of(0, all), 1);
    const double first = left(loss_with_attention(encoder, 0, false)),
                 later = left(loss_with_attention(encoder, 0, true));
    EXPECT_NEAR(of(1, "left"), first, 2e-4) << name;
    EXPECT_NEAR(of(1, "sufficient"), 1 - first, 2e-4) << name;
    EXPECT_NEAR(of(1, "needed"), later, 2e-4) << name;
    EXPECT_NEAR(of(1, "later"), 1 - later, 2e-4) << name;
    EXPECT_NEAR(of(4, "sufficient"), 1 - left(loss_with_attention(encoder, 3, false)), 2e-4);
    EXPECT_NEAR(of(4, "needed"), left(loss_with_attention(encoder, 3, true)), 2e-4);
    EXPECT_LT(table.rows[1].intervals[0].low, first);
    EXPECT_GT(table.rows[1].intervals[0].high, first);
    double depth = 0;
    for (int l = 0; l < 6; ++l) depth += table.rows[l].cells[0];
    EXPECT_TRUE(contains(table.note, fmt::format("Mean depth {:.2f} [", depth))) << table.note;
    EXPECT_TRUE(contains(table.note, fmt::format("{:.3f} [", none - with))) << table.note;
  }
}

/// The mean angle in degrees, and the mean of 1 − cosine, between the words' last states in the run
/// with positions and in one that is chosen for each line, both less the mean of the first.
template <typename Choose>
std::pair<double, double> turn_of(Encoder& encoder, const Choose& choose) {
  const int64_t C = encoder.model().config().d_model;
  using State = std::vector<double>;
  std::vector<State> with, other;  // of each word
  State mean(C);
  for (const std::string& line : eight_lines()) {
    const std::vector<int32_t> ids = encoder.model().tokenizer().encode(line).ids;
    const Encoding clean = encoder.encode_ids(ids);
    choose(ids, [&](const RunOptions& options) {
      const Encoding changed = encoder.encode_ids(ids, options);
      for (const int64_t t : text_places(encoder.model(), ids)) {
        const auto row = [&](const Encoding& encoding) {
          const auto state = encoding[0].hidden.subspan(t * C, C);
          return State(state.begin(), state.end());
        };
        with.push_back(row(clean));
        other.push_back(row(changed));
        for (int64_t c = 0; c < C; ++c) mean[c] += with.back()[c];
      }
    });
  }
  const auto words = static_cast<double>(with.size());
  double degrees = 0, distance = 0;
  for (size_t word = 0; word < with.size(); ++word) {
    double ab = 0, aa = 0, bb = 0;
    for (int64_t c = 0; c < C; ++c) {
      const double a = with[word][c] - mean[c] / words, b = other[word][c] - mean[c] / words;
      ab += a * b, aa += a * a, bb += b * b;
    }
    const double cosine = std::min(ab / std::sqrt(aa * bb), 1.0);
    degrees += std::acos(cosine) * 180 / std::numbers::pi;
    distance += 1 - cosine;
  }
  return {degrees / words, distance / words};
}

// The vectors are added after no norm, so that after attention 1 the path is the vectors less their
// mean; the controls have its lengths.
TEST(ReadingTest, OtherVectorsOfTheSameLengthAreControls) {
  Encoder encoder = encoder_of("learned");
  const Model& model = encoder.model();
  const int64_t C = model.config().d_model;
  const auto vectors_of = [&](const std::vector<int32_t>& ids) {
    std::vector<float> rows = model.position_vectors(std::ssize(ids));
    const RunOptions blind{.positions = mean_at_words(model, ids)};
    const std::vector<float> mean =
        recorded(encoder, ids, {Hook::kPosEmbed}, blind).at(Hook::kPosEmbed).values;
    for (size_t i = 0; i < rows.size(); ++i) rows[i] -= mean[i];
    return rows;
  };
  const auto without = [&](uint64_t draw, const auto& rows_of) {
    uint64_t seed = 1 + draw * eight_lines().size();
    return turn_of(encoder,
                   [&](const std::vector<int32_t>& ids, const auto& run) {
                     Subtraction others(Hook::kResidMid, 0, {rows_of(ids, seed++)});
                     run({.observer = &others});
                   })
        .first;
  };
  const auto random_of = [&](const std::vector<int32_t>& ids, uint64_t seed) {
    return random_rows(vectors_of(ids), C, seed);
  };
  const auto shuffled_of = [&](const std::vector<int32_t>& ids, uint64_t seed) {
    const std::vector<float> rows = vectors_of(ids);
    const std::vector<int64_t> order =
        shuffled_order(std::ssize(ids), text_places(model, ids), seed);
    std::vector<float> moved(rows.size());
    for (size_t i = 0; i < moved.size(); ++i) moved[i] = rows[order[i / C] * C + i % C];
    return moved;
  };
  const auto [all, all_by_cosine] =
      turn_of(encoder, [&](const std::vector<int32_t>& ids, const auto& run) {
        run({.positions = mean_at_words(model, ids)});
      });
  const auto [left, by_cosine] =
      turn_of(encoder, [&](const std::vector<int32_t>& ids, const auto& run) {
        Subtraction vectors(Hook::kResidMid, 0, {vectors_of(ids)});
        run({.observer = &vectors});
      });
  double random = 0, shuffled = 0;
  for (uint64_t draw = 0; draw < 3; ++draw) {
    random += without(draw, random_of) / 3;
    shuffled += without(draw, shuffled_of) / 3;
  }
  const Observed run = observe_masked(encoder, eight_lines(), {"reading_angle"});
  const auto of = [&](const char* column) { return number(run, "reading_angle", 1, column); };
  EXPECT_NEAR(of("left"), left / all, 2e-4);
  EXPECT_NEAR(of("random"), random / all, 2e-4);
  EXPECT_DOUBLE_EQ(of("left_less_random"), of("left") - of("random"));
  // Shares of the squares are smaller.
  EXPECT_LT(by_cosine / all_by_cosine, of("left"));
  EXPECT_NEAR(of("shuffled"), shuffled / all, 2e-4);
  EXPECT_FALSE(run.tables.contains("reading"));
  const Row& row = run.tables.at("reading_angle").rows[1];
  for (int column = 0; column < 5; ++column) {  // all have intervals
    EXPECT_LE(row.intervals[column].low, row.cells[column]) << column;
    EXPECT_GE(row.intervals[column].high, row.cells[column]) << column;
  }
}

// The mean over models of several seeds.
TEST(ReadingTest, RandomWeightsOfTheTrainedOnesSizes) {
  Encoder encoder = encoder_of();
  lens::ObserveOptions request = asking_for({"reading_angle"});
  const std::vector<std::string> lines = eight_lines();
  request.masked = lines;
  request.baseline = {.models = 2, .spread = Spread::kOwn};
  const std::vector<lens::Run> subject = {run_of(encoder)};
  std::vector<lens::Text> texts;
  for (const std::string& line : lines) texts.push_back({.text = line});
  const std::vector<Observed> runs = lens::observe_means(subject, texts, request);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].label, "own spread");
  EXPECT_EQ(runs[1].untrained, 2);
  double mean = 0;
  for (const uint64_t seed : {1, 2}) {
    Encoder random(encoder.model().untrained(seed, Spread::kOwn));
    mean +=
        number(observe_masked(random, lines, {"reading_angle"}), "reading_angle", 2, "left") / 2;
  }
  EXPECT_NEAR(number(runs[1], "reading_angle", 2, "left"), mean, 1e-12);
}

TEST(ReadingTest, WithoutZeroWordsHaveNoVector) {
  Encoder encoder = encoder_of("learned");
  const double with = loss_of(encoder, [](const MaskedText&, const auto& run) { run({}); });
  const double none = loss_of(encoder, [&](const MaskedText& text, const auto& run) {
    run({.positions = mean_at_words(encoder.model(), text.token_ids, true)});
  });
  lens::ObserveOptions request = asking_for({"reading"});
  const std::vector<std::string> lines = eight_lines();
  request.masked = lines;
  request.without = "zero";
  const Observed run = observe_all({run_of(encoder)}, lines, request).at(0);
  EXPECT_TRUE(contains(run.tables.at("reading").note, fmt::format("{:.3f} [", none - with)))
      << run.tables.at("reading").note << none - with;
}

// Of the states, which are token and position.
TEST(ReadingTest, PresentIsTheVectorsShareOfTheSquares) {
  Encoder encoder = encoder_of();
  double vectors = 0, states = 0;
  for (const MaskedText& text : masked_lines(encoder.model(), kDrawsOfReading)) {
    const auto T = std::ssize(text.token_ids);
    const Trace trace = recorded(encoder, text.token_ids, {Hook::kFullEmbed});
    const std::vector<float> rows = encoder.model().position_vectors(T),
                             sums = trace.at(Hook::kFullEmbed).values;
    for (int64_t c = 0; c < 128; ++c) {
      double mean = 0;
      for (int64_t t = 1; t < T - 1; ++t) mean += rows[t * 128 + c] / static_cast<double>(T - 2);
      for (int64_t t = 1; t < T - 1; ++t) {
        vectors += std::pow(rows[t * 128 + c] - mean, 2);
        states += std::pow(sums[t * 128 + c], 2);
      }
    }
  }
  const Observed run = observe_masked(encoder, eight_lines(), {"reading"});
  EXPECT_NEAR(number(run, "reading", 0, "present"), vectors / states, 1e-5);
}

// Where nothing is added, the states after l layers have all that l attentions have read.
TEST(ReadingTest, WhatActsWithinAttentionIsTakenAwayFromTheOthers) {
  for (const char* const name : {"rotary", "relative", "alibi"}) {
    Encoder encoder = encoder_of(name);
    const std::vector<MaskedText> texts = masked_lines(encoder.model(), kDrawsOfReading);
    const std::vector<std::vector<int32_t>> ids = ids_of(texts);
    const RunOptions with, none = {.positions = Positions().averaged()};
    const Trace states = recorded(encoder, ids, {Hook::kResidPre}),
                blind = recorded(encoder, ids, {Hook::kResidPre}, none);
    const auto loss_of = [&](const RunOptions& options) {
      MaskedScore score;
      add_scores(encoder, options, texts, {&score, 1});
      return score.loss().mean;
    };
    const double least = loss_of(with), most = loss_of(none);
    const Observed run = observe_masked(encoder, eight_lines(), {"reading"});
    for (int64_t l = 0; l < 6; ++l) {
      Patch patch(Hook::kResidPre, l, states), other(Hook::kResidPre, l, blind);
      const double first = loss_of({.observer = &patch, .positions = none.positions}),
                   later = loss_of({.observer = &other});
      EXPECT_NEAR(number(run, "reading", l, "left"), (first - least) / (most - least), 2e-4) << l;
      EXPECT_NEAR(number(run, "reading", l, "later"), (most - later) / (most - least), 2e-4) << l;
      EXPECT_TRUE(std::isnan(number(run, "reading", l, "present")));
    }
    EXPECT_NEAR(number(run, "reading", 6, "left"), 0, 1e-5);
    EXPECT_NEAR(number(run, "reading", 6, "later"), 0, 1e-5);
  }
}

// Without a head that predicts words, and with a norm on the sum: the vector passes that norm at
// the run's scale, and is subtracted from what attention has been added to.
TEST(ReadingTest, StatesAreComparedWhereThereIsNoHead) {
  const BertFolder bert({});
  Encoder encoder(Model::load(bert.path()));
  const Model& model = encoder.model();
  const std::vector<std::string> lines = {"a b c d e f", "f e a b", "c"};
  const Observed run = observe_masked(encoder, lines, {"reading"});
  ASSERT_TRUE(run.tables.contains("reading")) << why_missing(run, "reading");
  const std::vector<Row>& rows = run.tables.at("reading").rows;
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(contains(run.tables.at("reading").note, "cosine"));
  const int64_t C = model.config().d_model;
  const std::vector<float> scale = model.weights().embedding_norm.weight.to_float();
  std::vector<std::vector<double>> clean, changed, blind;  // of each word
  std::vector<double> mean(C);
  for (const std::string& line : lines) {
    const std::vector<int32_t> ids = model.tokenizer().encode(line).ids;
    const auto T = std::ssize(ids);
    const Trace trace =
        recorded(encoder, ids, {Hook::kTokenEmbed, Hook::kPosEmbed, Hook::kTokenTypeEmbed});
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
    const Encoding without = encoder.encode_ids(ids, {.positions = mean_at_words(model, ids)});
    for (int64_t t = 1; t < T - 1; ++t) {
      const auto of = [&](const Encoding& encoding) {
        const auto row = encoding[0].hidden.subspan(t * C, C);
        return std::vector<double>(row.begin(), row.end());
      };
      clean.push_back(of(before));
      changed.push_back(of(after));
      blind.push_back(of(without));
      for (int64_t c = 0; c < C; ++c) mean[c] += clean.back()[c];
    }
  }
  const auto distance = [&](const std::vector<std::vector<double>>& others) {
    double total = 0;
    for (size_t word = 0; word < clean.size(); ++word) {
      double ab = 0, aa = 0, bb = 0;
      for (int64_t c = 0; c < C; ++c) {
        const double middle = mean[c] / static_cast<double>(clean.size());
        const double a = clean[word][c] - middle, b = others[word][c] - middle;
        ab += a * b, aa += a * a, bb += b * b;
      }
      total += 1 - ab / std::sqrt(aa * bb);
    }
    return total;
  };
  EXPECT_GT(distance(blind), 0);
  EXPECT_NEAR(rows[1].cells[0], distance(changed) / distance(blind), 1e-5);
}

// The BERT's table has 32 rows.
TEST(ReadingTest, LongTextsAreCutOrSaidToRunInWindows) {
  const BertFolder bert({});
  Encoder encoder(Model::load(bert.path()));
  const std::vector<std::string> longer = {repeat("a b c d ", 20), "f e a b"};
  const std::vector<std::string> cut = {repeat("a b c d ", 7) + "a b", "f e a b"};
  const auto observed = [&](Overflow overflow, const std::vector<std::string>& lines) {
    return observe_masked(encoder, lines, {"reading"}, {.overflow = overflow});
  };
  const Observed truncated = observed(Overflow::kTruncate, longer);
  const std::vector<Row>& rows = truncated.tables.at("reading").rows;
  const Observed short_ones = observed(Overflow::kError, cut);
  for (size_t l = 0; l < rows.size(); ++l) {
    const std::vector<double>& want = short_ones.tables.at("reading").rows[l].cells;
    EXPECT_TRUE(std::ranges::equal(rows[l].cells, want, same_number)) << l;
  }
  EXPECT_EQ(why_missing(observed(Overflow::kWindow, longer), "reading"),
            "a text was run in overlapping windows");
  EXPECT_TRUE(observed(Overflow::kClamp, longer).tables.contains("reading"));
}

TEST(ReadingTest, WithoutPositionsThereIsNothingToRead) {
  Encoder none = encoder_of("none");
  const std::vector<std::string> lines = eight_lines();
  EXPECT_EQ(why_missing(observe_masked(none, lines, {"reading"}), "reading"),
            "nothing that is lost without word positions can be told from none");
  Encoder encoder = encoder_of();
  const RunOptions cut = {.cut_residuals = {{.layer = 1}}};
  EXPECT_EQ(why_missing(observe_masked(encoder, lines, {"reading"}, cut), "reading"),
            "a residual connection is cut");
}

/// What takes the place of a text's patterns [H, T, T] in the run with the mean row at its words.
using MakePatterns = std::function<void(size_t text, std::span<float> pattern)>;

// The offset patterns of a text are the other texts' means; special tokens keep what they get.
TEST(OffsetPatternsTest, AreMeansByOffsetOverOtherTexts) {
  Encoder encoder = encoder_of();
  const std::vector<MaskedText> texts = masked_lines(encoder.model(), 1);
  std::vector<std::vector<float>> patterns;  // of layer 1
  for (const MaskedText& text : texts) {
    const Trace trace = recorded(encoder, text.token_ids, {Hook::kPattern});
    patterns.push_back(trace.at(Hook::kPattern, 0).values);
  }
  const auto weight_at = [&](size_t without, int64_t head, int64_t offset) {
    double sum = 0, count = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto T = std::ssize(texts[i].token_ids);
      for (int64_t q = 1; q < T - 1 && i != without; ++q) {
        if (q + offset < 1 || q + offset >= T - 1) continue;
        sum += patterns[i][(head * T + q) * T + q + offset];
        ++count;
      }
    }
    return count > 0 ? sum / count : 0;
  };
  const auto loss_with = [&](const MakePatterns& make) {
    return loss_of(
        encoder,
        [&](const MaskedText& text, const auto& run) {
          Editor edit(Hook::kPattern, 0, [&](const HookEvent&, std::span<float> values) {
            make(text.number, values);
          });
          run({.observer = &edit, .positions = mean_at_words(encoder.model(), text.token_ids)});
        },
        1);
  };
  const double with = loss_of(
      encoder, [](const MaskedText&, const auto& run) { run({}); }, 1);
  const double none = loss_with([](size_t, std::span<float>) {});
  const auto by_offset = [&](int64_t sign) {
    return loss_with([&](size_t text, std::span<float> values) {
      const auto T = std::ssize(texts[text].token_ids);
      for (int64_t row = 0; row < 4 * T; ++row) {
        const int64_t head = row / T, q = row % T;
        if (q == 0 || q == T - 1) continue;
        double sum = 0;
        for (int64_t k = 1; k < T - 1; ++k) sum += weight_at(text, head, sign * (k - q));
        const double words = 1 - values[row * T] - values[row * T + T - 1];
        for (int64_t k = 1; k < T - 1; ++k) {
          values[row * T + k] =
              static_cast<float>(words * weight_at(text, head, sign * (k - q)) / sum);
        }
      }
    });
  };
  const double own = loss_with([&](size_t text, std::span<float> values) {
    std::ranges::copy(patterns[text], values.begin());
  });
  const Observed run = observe_masked(encoder, eight_lines(), {"offset_patterns"});
  ASSERT_EQ(run.tables.at("offset_patterns").rows.size(), 6u);
  const auto won = [&](double loss) { return (none - loss) / (none - with); };
  EXPECT_NEAR(number(run, "offset_patterns", 1, "offset_patterns"), won(by_offset(1)), 2e-4);
  EXPECT_NEAR(number(run, "offset_patterns", 1, "mirrored"), won(by_offset(-1)), 2e-4);
  EXPECT_NEAR(number(run, "offset_patterns", 1, "patterns"), won(own), 2e-4);
  EXPECT_GT(number(run, "offset_patterns", 1, "offset_patterns"), 0.6);
  EXPECT_LT(number(run, "offset_patterns", 1, "mirrored"), 0);
}

// Of positions that act within attention alone, the patterns of all layers are all that there is.
TEST(OffsetPatternsTest, AllPatternsAreAllOfRotaryPositions) {
  Encoder encoder = encoder_of("rotary");
  const Observed run = observe_masked(encoder, eight_lines(), {"offset_patterns"});
  EXPECT_NEAR(number(run, "offset_patterns", 6, "patterns"), 1, 1e-4);
  EXPECT_LT(number(run, "offset_patterns", 3, "patterns"), 0.5);
}

TEST(OffsetPatternsTest, PatternsThatTakeTooMuchMemoryAreNotKept) {
  Encoder encoder = encoder_of();
  const std::vector<std::string> lines = {kText, repeat("Tom bit a dog. ", 500)};
  EXPECT_TRUE(contains(
      why_missing(observe_masked({run_of(encoder)}, {kText}, lines, {"offset_patterns"}).at(0),
                  "offset_patterns"),
      "too much memory"));
}

}  // namespace
}  // namespace phasor::internal
