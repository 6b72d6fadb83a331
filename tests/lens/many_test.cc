// Many texts as one, and two runs of them: means, masked tokens, the probe, and what moves.
#include "lens/causes.h"
#include "lens/prediction.h"
#include "lens/study/means.h"
#include "tests/lens/observing.h"
#include "tests/support/encoder_cases.h"

namespace phasor::internal {
namespace {

TEST(ManyTest, EveryTokenCountsAsMuchAsAnyOther) {
  Encoder encoder = encoder_of();
  const lens::ObserveOptions request =
      asking_for({"effect", "attention", "split", "order", "scores", "relative"});
  lens::ObserveOptions second = request;
  second.seed = 2;  // each text has its own
  const Observed a = observe(encoder, kText, request), b = observe(encoder, kOther, second);
  const Observed mean = observe_all({run_of(encoder)}, {kText, kOther}, request).at(0);
  const auto m = static_cast<double>(a.num_tokens), n = static_cast<double>(b.num_tokens);
  EXPECT_EQ(mean.num_texts, 2);
  EXPECT_EQ(mean.num_tokens, a.num_tokens + b.num_tokens);
  for (const auto& [view, table] : mean.tables) {
    for (const Row& row : table.rows) {
      for (size_t c = 0; c < row.cells.size(); ++c) {
        const char* const column = table.columns[c].c_str();
        const bool far = a.table(view)->column(column) < 0;  // only the longer text reaches so far
        const double x = far ? 0 : number(a, view.c_str(), row, column);
        const double y = number(b, view.c_str(), row, column);
        // No two tokens of the shorter text, or of both, are so far apart.
        const double want = std::isnan(x) ? y : (m * x + n * y) / (m + n);
        EXPECT_TRUE(std::abs(row.cells[c] - want) < 1e-5 ||
                    (std::isnan(want) && std::isnan(row.cells[c])))
            << view << "." << column << row.layer << ": " << row.cells[c] << ", not " << want;
      }
    }
  }
  EXPECT_EQ(mean.tables.at("offsets").columns, b.tables.at("offsets").columns);
  EXPECT_TRUE(
      std::isnan(number(a, "relative", {.layer = 1, .head = 2, .label = "pp", .cells = {}}, "8")));
  EXPECT_EQ(mean.tables.size(), b.tables.size());
}

/// The interval of a cell; NaN where it has none.
Interval interval(const Observed& run, const char* view, int64_t layer, const char* column) {
  const Table& table = run.tables.at(view);
  const Row& row = *table.find({.layer = layer, .cells = {}});
  const int64_t c = table.column(column);
  if (row.intervals.empty()) return {std::nan(""), std::nan("")};
  return row.intervals.at(c);
}

TEST(ManyTest, IntervalsAreThoseOfTextsDrawnAnewAndOneTextHasNone) {
  Encoder encoder = encoder_of();
  const lens::ObserveOptions request = asking_for({"effect", "order", "split"});
  const std::vector<std::string> lines = {kText, kOther, "dog", "A long day on the river."};
  const Observed mean = observe_all({run_of(encoder)}, lines, request).at(0);
  for (const auto& [view, column] :
       {std::pair{"effect", "effect"}, {"order", "swap"}, {"split", "token"}}) {
    for (int64_t layer = 1; layer <= 6; ++layer) {
      std::vector<double> sums, weights;
      for (size_t i = 0; i < lines.size(); ++i) {
        lens::ObserveOptions of_text = request;
        of_text.seed = i + 1;
        const Observed text = observe(encoder, lines[i], of_text);
        const bool known = text.table(view) != nullptr;  // one token has no other order
        const auto tokens = static_cast<double>(text.num_tokens);
        sums.push_back(known ? tokens * number(text, view, layer, column) : 0);
        weights.push_back(known ? tokens : 0);
      }
      const Interval want = Bootstrap(4).ratio(sums, weights);
      const Interval got = interval(mean, view, layer, column);
      EXPECT_NEAR(got.low, want.low, 1e-6) << view << layer;
      EXPECT_NEAR(got.high, want.high, 1e-6) << view << layer;
      EXPECT_LT(got.low, got.high);
    }
  }
  const Observed one = observe_all({run_of(encoder)}, {kText}, request).at(0);
  EXPECT_TRUE(std::isnan(interval(one, "effect", 1, "effect").low));
}

TEST(ManyTest, ManyTextsAreDrawnInBlocks) {
  std::vector<double> values;
  std::vector<int64_t> texts;
  for (int64_t text = 0; text < 1000; ++text) {
    for (int64_t i = 0; i <= text % 3; ++i) {
      values.push_back(static_cast<double>(text % 7) + (text % 2 == 0 ? 0.5 : 0));
      texts.push_back(text);
    }
  }
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  const Estimate got = estimate(values, texts);
  EXPECT_NEAR(got.mean, mean, 1e-12);
  // About 1.96 standard errors of 1000 independent texts on either side.
  EXPECT_NEAR(got.interval.high - got.interval.low, 2 * 1.96 * 2.0 / std::sqrt(1000.0), 0.08);
  EXPECT_LT(got.interval.low, mean);
  EXPECT_GT(got.interval.high, mean);
  EXPECT_TRUE(std::isnan(estimate({}, {}).interval.low));
}

TEST(ManyTest, TheBaselineIsTheSameRunOfUntrainedModels) {
  Encoder encoder = encoder_of();
  const std::vector<std::string> lines = {kText, kOther};
  lens::ObserveOptions request = asking_for({"effect", "heads", "masked"});
  request.masked = lines;
  request.baseline = {3};
  const lens::Run run = run_of(encoder);
  const lens::Text texts[] = {{.text = kText}, {.text = kOther}};
  const std::vector<Observed> runs = lens::observe_means({&run, 1}, texts, request);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].label, "untrained");
  std::vector<Observed> seeds;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    Encoder untrained(encoder.model().untrained(seed));
    seeds.push_back(observe_all({run_of(untrained)}, lines, request).at(0));
  }
  for (int64_t layer = 0; layer <= 6; ++layer) {
    std::vector<double> values;
    for (const Observed& seed : seeds) values.push_back(number(seed, "effect", layer, "effect"));
    EXPECT_NEAR(number(runs[1], "effect", layer, "effect"), (values[0] + values[1] + values[2]) / 3,
                1e-12);
    EXPECT_EQ(interval(runs[1], "effect", layer, "effect").low, std::ranges::min(values));
    EXPECT_EQ(interval(runs[1], "effect", layer, "effect").high, std::ranges::max(values));
  }
  // A model that has learned nothing guesses among 8000 pieces.
  EXPECT_GT(number(runs[1], "masked", "all", "loss"), number(runs[0], "masked", "all", "loss") + 2);
}

TEST(ManyTest, WhatSomeTextsLackIsTheMeanOverTheOthers) {
  Encoder encoder = encoder_of();
  const Observed mean = observe_all({run_of(encoder)}, {kText, "dog"}).at(0);
  EXPECT_EQ(why_missing(mean, "split"), "");
  EXPECT_NEAR(number(mean, "split", 3, "token"),
              number(observe(encoder, kText), "split", 3, "token"), 1e-15);  // w·x/w
  EXPECT_NE(why_missing(observe_all({run_of(encoder)}, {"dog", "dog"}).at(0), "split"), "");
  const Observed one = observe_all({run_of(encoder)}, {kText}).at(0);
  EXPECT_EQ(why_missing(one, "probe"), "needs at least two texts: to train on, and to hold out");
  EXPECT_EQ(why_missing(one, "corpus"), "needs at least two texts, each of two tokens or more");
}

TEST(ManyTest, TheProbeIsTheLibrarysOnTextsItHasNotSeen) {
  Encoder encoder = encoder_of();
  const std::vector<std::string> lines = all_lines();
  lens::ObserveOptions request = asking_for({"probe", "corpus"});
  request.seed = 3;
  const Observed many = observe_all({run_of(encoder)}, lines, request).at(0);
  std::vector<ProbeText> train, held_out;
  size_t text_number = 0;
  for (const std::string& line : lines) {
    ProbeText text{.token_ids = encoder.model().tokenizer().encode(line).ids, .places = {}};
    for (int64_t t = 1; t + 1 < std::ssize(text.token_ids); ++t) text.places.push_back(t);
    (text_number++ % 4 == 1 ? held_out : train).push_back(text);
  }
  const std::vector<ProbeReport> want = probe_positions(encoder, train, held_out, {}, 3);
  const ProbeScore token = probe_token_embeddings(encoder.model(), train, held_out);
  EXPECT_GT(token.r2, 0.05);
  for (int64_t l = 0; l <= 6; ++l) {
    EXPECT_NEAR(number(many, "probe", l, "token_r2"), token.r2, 1e-12);
    EXPECT_NEAR(number(many, "probe", l, "r2"), want[l].held_out.r2, 1e-3);
    EXPECT_NEAR(number(many, "probe", l, "shuffled"), want[l].shuffled.r2, 1e-3);
    EXPECT_NEAR(number(many, "probe", l, "mean_error"), want[l].mean.mean_absolute_error, 1e-6);
    EXPECT_NEAR(number(many, "corpus", l, "position") + number(many, "corpus", l, "text") +
                    number(many, "corpus", l, "rest"),
                1, 1e-9);
  }
  EXPECT_GT(number(many, "probe", 0, "r2"), 0.9);
  const std::string counts =
      fmt::format("Trained on {} tokens of {} texts, scored on {} tokens of {} others.",
                  want[0].num_train, train.size(), want[0].num_held_out, held_out.size());
  EXPECT_EQ(many.tables.at("probe").note.find(counts), 0u) << many.tables.at("probe").note;
}

/// The masked tokens of these lines in both models.
std::vector<Measured> masked(const std::vector<std::string>& lines, uint64_t seed = 1) {
  Encoder a = encoder_of("sinusoidal"), b = encoder_of("learned");
  lens::ObserveOptions request = asking_for({"masked"});
  request.seed = seed;
  request.masked = lines;
  return observe_all({run_of(a, "sinusoidal"), run_of(b, "learned")}, {kText}, request);
}

TEST(ManyTest, MasksDependOnTheSeedAloneAndAreTheSameForBoth) {
  const std::vector<std::string> lines = all_lines();
  const std::vector<Measured> first = masked(lines), again = masked(lines),
                              other = masked(lines, 2);
  const auto of = [](const Observed& run, const char* column) {
    return number(run, "masked", "all", column);
  };
  for (size_t side = 0; side < 2; ++side) {
    EXPECT_EQ(first[side].masked.losses, again[side].masked.losses);
    for (const char* column : {"tokens", "masks"}) {
      EXPECT_EQ(of(first[side], column), of(first[0], column));
      EXPECT_EQ(of(first[side], column), of(other[side], column));  // 15 % of each text
    }
    EXPECT_NE(of(first[side], "loss"), of(other[side], "loss"));
    EXPECT_NEAR(of(first[side], "masks") / of(first[side], "tokens"), 0.15, 0.01);
    EXPECT_GT(of(first[side], "accuracy"), 0.15);
    EXPECT_LT(of(first[side], "loss"), 6);
  }
  std::vector<double> difference(lines.size()), masks(lines.size());
  for (size_t i = 0; i < first[0].masked.losses.size(); ++i) {
    const int64_t text = first[0].masked.texts[i];
    difference.at(text) += first[1].masked.losses[i] - first[0].masked.losses[i];
    ++masks.at(text);
  }
  const Interval interval = Bootstrap(std::ssize(lines)).ratio(difference, masks);
  EXPECT_LT(interval.high - interval.low, 0.5);
  EXPECT_EQ(first[1].tables.at("masked").note,
            fmt::format("Loss of learned less that of sinusoidal, mask by mask: {:+.3f} [{:+.3f}, "
                        "{:+.3f}].",
                        of(first[1], "loss") - of(first[0], "loss"), interval.low, interval.high));
}

TEST(ManyTest, TheLensReadsTheSameMasksOffEveryLayer) {
  Encoder encoder = encoder_of();
  const auto observed = [&](const std::vector<std::string>& lines,
                            const std::vector<std::string>& views) {
    return observe_masked({run_of(encoder)}, {kText}, lines, views).at(0);
  };
  const std::vector<std::string> lines = all_lines();
  const Observed run = observed(lines, {"masked", "lens"});
  ASSERT_EQ(run.tables.at("lens").rows.size(), 7u);
  const Row& of_masked = run.tables.at("masked").rows.at(0);
  const Row& last = run.tables.at("lens").rows.back();
  for (size_t c = 0; c < 2; ++c) {  // loss, accuracy
    EXPECT_EQ(last.cells.at(c), of_masked.cells.at(c));
    EXPECT_EQ(last.intervals.at(c).low, of_masked.intervals.at(c).low);
    EXPECT_EQ(last.intervals.at(c).high, of_masked.intervals.at(c).high);
  }
  EXPECT_GT(number(run, "lens", 0, "loss"), number(run, "lens", 6, "loss") + 1);
  const Observed without = observed(lines, {"masked"});  // which observes no layer
  EXPECT_EQ(without.tables.at("masked").rows.at(0).cells, of_masked.cells);
  EXPECT_EQ(without.table("lens"), nullptr);
  EXPECT_EQ(observed(lines, {"lens"}).tables.at("lens").rows.at(3).cells,
            run.tables.at("lens").rows.at(3).cells);

  const std::vector<std::string> words = {"dog", "house"};  // each has one token
  std::vector<double> losses(7), hits(7);
  for (const std::string& word : words) {
    std::vector<int32_t> ids = encoder.model().tokenizer().encode(word).ids;
    const int32_t hidden = std::exchange(ids.at(1), *encoder.model().tokenizer().mask_id());
    const Trace trace = recorded(encoder, ids, Trace::hidden_states_and_attentions());
    for (int64_t l = 0; l <= 6; ++l) {
      const std::vector<float> logits =
          encoder.mlm_logits(std::span(trace.hidden_state(l).values).subspan(128, 128));
      const TokenScore score = score_tokens(logits, std::ssize(logits), {&hidden, 1}).at(0);
      losses[l] += score.loss / 2;
      hits[l] += score.rank == 0 ? 0.5 : 0;
    }
  }
  const Observed two = observed(words, {"lens"});
  for (int64_t l = 0; l <= 6; ++l) {
    EXPECT_NEAR(number(two, "lens", l, "loss"), losses[l], 1e-5) << l;
    EXPECT_EQ(number(two, "lens", l, "accuracy"), hits[l]) << l;
  }
}

double masked_loss(const Observed& run) { return number(run, "masked", "all", "loss"); }

/// The loss of the tokens that are masked in `lines`, in a run of its own.
double loss_of(Encoder& encoder, const std::vector<std::string>& lines, const RunOptions& options) {
  return masked_loss(observe_masked(encoder, lines, {"masked"}, options));
}

TEST(ManyTest, MasksAreTheLossesOfWhichMaskedIsTheMean) {
  const std::vector<std::string> lines = {"Tom bit a dog.", "", kOther};
  Encoder encoder = encoder_of();
  const Observed run = observe_masked(encoder, lines, {"masked", "masks"});
  const std::vector<Row>& rows = run.tables.at("masks").rows;
  ASSERT_EQ(std::ssize(rows), std::llround(number(run, "masked", "all", "masks")));
  double loss = 0, right = 0;
  for (const Row& row : rows) loss += row.cells[0], right += row.cells[1];
  EXPECT_NEAR(loss / static_cast<double>(rows.size()), masked_loss(run), 1e-12);
  EXPECT_NEAR(right / static_cast<double>(rows.size()), number(run, "masked", "all", "accuracy"),
              1e-12);
  EXPECT_EQ(rows.front().label, "1.1");
  EXPECT_EQ(rows.back().label, fmt::format("2.{}", rows.size() - 1));
  EXPECT_EQ(observe_masked(encoder, lines, {}).table("masks"), nullptr);
}

TEST(ManyTest, WhatAComponentCausesIsTheLossOfARunWithoutIt) {
  const std::vector<std::string> lines = eight_lines();
  Encoder encoder = encoder_of();
  const Observed run = observe_masked(encoder, lines, {"masked", "causes"});
  const auto cost = [&](const RunOptions& options) {
    return loss_of(encoder, lines, options) - masked_loss(run);
  };
  const auto of = [&](const char* part, const char* column = "removed") {
    return number(run, "causes", part, column);
  };
  EXPECT_NEAR(of("positions"), cost({.positions = Positions().averaged()}), 1e-9);
  EXPECT_GT(of("positions"), 1);
  // Without their component of the embeddings, positions are as good as averaged.
  EXPECT_NEAR(of("position 0"), of("positions"), 0.3);
  EXPECT_TRUE(std::isnan(of("positions", "random")));
  for (const Row& row : run.tables.at("causes").rows) {
    if (row.label == "positions") continue;
    EXPECT_NEAR(row.cells[0] - row.cells[2], row.cells[3], 1e-9) << row.label;
    EXPECT_LT(row.intervals[0].low, row.intervals[0].high) << row.label;
  }
  EXPECT_EQ(run.tables.at("causes").rows.size(), 1u + 3 + 3 * 6);
  // The vectors less their mean over the text, of some words alone: two at either end, or the rest.
  for (const bool edges : {true, false}) {
    Editor less(Hook::kResidMid, 0, [&](const HookEvent& event, std::span<float> values) {
      const int64_t T = event.shape[0], width = event.shape[1];
      const std::vector<float> vectors = encoder.model().position_vectors(T);
      for (int64_t t = 1; t + 1 < T; ++t) {
        if ((t <= 2 || t >= T - 3) != edges) continue;
        for (int64_t c = 0; c < width; ++c) {
          double mean = 0;
          for (int64_t other = 0; other < T; ++other)
            mean += vectors[other * width + c] / static_cast<double>(T);
          values[t * width + c] -= static_cast<float>(vectors[t * width + c] - mean);
        }
      }
    });
    EXPECT_NEAR(of(edges ? "direct path edges" : "direct path interior"), cost({.observer = &less}),
                1e-4);
  }
}

TEST(ManyTest, ShuffledPartsOfAOneWordTextAreItsOwn) {
  Encoder encoder = encoder_of();
  const std::vector<std::string> lines = {"Tom"};  // can only change places with itself
  const Observed run = observe_masked(encoder, lines, {"causes"});
  for (const Row& row : run.tables.at("causes").rows) {
    if (row.label == "positions") continue;
    // With one order there is no component, and next to [CLS] no interior.
    const bool is_there = row.label == "direct path" || row.label == "direct path edges";
    for (const double cell : row.cells) EXPECT_EQ(std::isnan(cell), !is_there) << row.label;
    if (!is_there) continue;
    EXPECT_NEAR(row.cells[2], row.cells[0], 1e-9) << row.label;
    EXPECT_NEAR(row.cells[3], 0, 1e-9) << row.label;
  }
}

TEST(ManyTest, APatchedPartIsThatOfTheOtherRun) {
  const std::vector<std::string> lines = eight_lines();
  Encoder encoder = encoder_of();
  const RunOptions own, averaged{.positions = Positions().averaged()};
  const auto runs = observe_masked({run_of(encoder, "a", own), run_of(encoder, "b", averaged)},
                                   lines, lines, {"masked", "patched"});
  const auto of = [&](const char* part, const char* column) {
    return number(runs[1], "patched", part, column);
  };
  const double losses[] = {masked_loss(runs[0]), masked_loss(runs[1])};
  for (const char* column : {"denoising", "noising"}) {
    EXPECT_NEAR(of("all", column), losses[1] - losses[0], 1e-9);
    // Of these positions, all that later layers know is in the states.
    for (const char* state : {"state 0", "state 3", "state 5"})
      EXPECT_NEAR(of(state, column), of("all", column), 1e-4) << state;
  }
  EXPECT_EQ(runs[0].table("patched"), nullptr);

  std::vector<std::vector<int32_t>> sequences;
  for (const MaskedText& text :
       masked_texts(encoder.model(), tokenize_corpus(encoder.model(), lines), 0, 1))
    sequences.push_back(text.token_ids);
  const Trace all{Hook::kZ, Hook::kAttnOut, Hook::kMlpOut};
  const Trace traces[2] = {recorded(encoder, sequences, all, own),
                           recorded(encoder, sequences, all, averaged)};
  /// By how much a patch moves the loss of a run towards the other's.
  const auto moved = [&](size_t run, Observer& patch) {
    RunOptions options = run == 0 ? own : averaged;
    options.observer = &patch;
    const double change = loss_of(encoder, lines, options) - losses[run];
    return run == 0 ? change : -change;
  };
  for (const size_t run : {0, 1}) {
    const char* const column = run == 0 ? "noising" : "denoising";
    Patch attention(Hook::kAttnOut, 1, traces[1 - run]), mlp(Hook::kMlpOut, 4, traces[1 - run]);
    Editor head(Hook::kZ, 0, [&](const HookEvent& event, std::span<float> values) {
      const std::vector<float>& other = traces[1 - run].at(Hook::kZ, 0, event.sequence).values;
      for (int64_t i = 0; i < std::ssize(values); ++i) {
        if (i / event.shape[2] % event.shape[1] == 1) values[i] = other.at(i);
      }
    });
    EXPECT_NEAR(of("attention 2", column), moved(run, attention), 1e-5) << column;
    EXPECT_NEAR(of("MLP 5", column), moved(run, mlp), 1e-5) << column;
    EXPECT_NEAR(of("head 1.2", column), moved(run, head), 1e-4) << column;
    EXPECT_GT(of("head 1.2", column), 0.3) << column;
    const char* const share = run == 0 ? "needed" : "sufficient";
    EXPECT_NEAR(of("MLP 5", share), of("MLP 5", column) / of("all", column), 1e-9) << share;
  }
}

TEST(ManyTest, APatchedPositionComponentIsTheMeanOverOrdersAndTheRestIsAllElse) {
  Encoder encoder = encoder_of("learned");
  const RunOptions options[] = {{}, {.positions = Positions().reversed()}};
  // Of at most two tokens, which have two orders.
  const std::vector<std::string> lines = {"Tom bit", "a dog", "house"};
  const auto runs =
      observe_masked({run_of(encoder, "a", options[0]), run_of(encoder, "b", options[1])}, lines,
                     lines, {"masked", "patched"});
  const std::vector<MaskedText> texts =
      masked_texts(encoder.model(), tokenize_corpus(encoder.model(), lines), 0, 1);
  for (const auto& [part, hook] :
       {std::pair("attention 2", Hook::kAttnOut), {"state 1", Hook::kResidPre}}) {
    std::vector<std::vector<double>> position, rest;  // of each text, [T, C]: b's less a's
    for (const MaskedText& text : texts) {
      std::vector<double>& component = position.emplace_back(text.token_ids.size() * 128);
      std::vector<double>& whole = rest.emplace_back(component.size());
      for (const size_t run : {0, 1}) {
        const double sign = run == 0 ? -1 : 1;
        const Trace trace = recorded(encoder, text.token_ids, {hook}, options[run]);
        for (size_t i = 0; i < whole.size(); ++i) whole[i] += sign * trace.at(hook, 1).values[i];
        if (text.token_ids.size() < 4) continue;  // one token has no other order
        const auto components =
            position_components(encoder, text.token_ids, std::vector<int64_t>{1, 2},
                                std::vector{hook}, options[run], 2);
        for (size_t i = 0; i < 256; ++i) component[128 + i] += sign * components.at(0).at(1)[i];
      }
      for (size_t i = 0; i < whole.size(); ++i) whole[i] -= component[i];
    }
    for (const auto& [name, half] : {std::pair(" position", &position), {" rest", &rest}}) {
      for (const size_t run : {0, 1}) {
        const auto& rows = *half;
        Editor patch(hook, 1, [&](const HookEvent& event, std::span<float> values) {
          const float sign = run == 0 ? 1 : -1;
          for (size_t i = 0; i < values.size(); ++i)
            values[i] += sign * static_cast<float>(rows.at(event.sequence).at(i));
        });
        RunOptions patched = options[run];
        patched.observer = &patch;
        const double change = loss_of(encoder, lines, patched) - masked_loss(runs[run]);
        const std::string label = std::string(part) + name;
        const char* const column = run == 0 ? "noising" : "denoising";
        EXPECT_NEAR(number(runs[1], "patched", label, column), run == 0 ? change : -change, 1e-5)
            << label << column;
        EXPECT_GT(std::abs(change), 1e-4) << label << column;
      }
    }
  }
}

TEST(ManyTest, PatchingNeedsTwoRunsOfOneModelThatRecordWholeTexts) {
  Encoder a = encoder_of("sinusoidal"), b = encoder_of("learned");
  const auto patched = [](const lens::Run& first, const lens::Run& second,
                          const std::vector<std::string>& lines) {
    return observe_masked({first, second}, {kText}, lines, {"patched"}).at(1);
  };
  EXPECT_EQ(why_missing(patched(run_of(a), run_of(b), {kText, kOther}), "patched"),
            "the two runs are of different models");
  const Observed same = patched(run_of(b), run_of(b), {kText, kOther});
  for (const Row& row : same.tables.at("patched").rows) {
    EXPECT_EQ(row.cells[0], 0) << row.label;
    EXPECT_EQ(row.cells[1], 0) << row.label;
  }
  const std::string line = kText + repeat(" " + kText, 40);
  const lens::Run windows = run_of(b, "", {.overflow = Overflow::kWindow});
  EXPECT_EQ(why_missing(patched(run_of(b), windows, {line}), "patched"),
            "a text was run in overlapping windows");
  // Both runs are given the tokens that the one with fewer can take.
  const lens::Run cut = run_of(b, "", {.overflow = Overflow::kTruncate});
  const lens::Run none = run_of(b, "", {.positions = Positions::none()});
  EXPECT_EQ(why_missing(patched(cut, none, {line}), "patched"), "");
}

TEST(ManyTest, WithoutAddedVectorsThereIsNoDirectPathAndPositionsCauseNothing) {
  Encoder none = encoder_of("none");
  const std::vector<std::string> lines = {kText, kOther};
  const Observed run = observe_masked(none, lines, {"causes"});
  for (const Row& row : run.tables.at("causes").rows) EXPECT_NE(row.label, "direct path");
  EXPECT_EQ(number(run, "causes", "positions", "removed"), 0);
  EXPECT_NEAR(number(run, "causes", "position 3", "removed"), 0, 1e-5);
}

TEST(ManyTest, MaskedTextsThatARunCutsAreCutBeforeTheyAreMasked) {
  const std::string line = "Tom" + repeat(" and Tom", 200);
  Encoder encoder = encoder_of("learned");
  lens::ObserveOptions request = asking_for({"masked", "lens", "causes"});
  const std::vector<std::string> masked_lines = {line};
  request.masked = masked_lines;
  const std::vector<std::string> texts = {kText, kOther};
  const Measured cut =
      observe_all({run_of(encoder, "", {.overflow = Overflow::kTruncate})}, texts, request).at(0);
  request.tokenize.max_tokens = 128;
  const Measured want = observe_all({run_of(encoder)}, texts, request).at(0);
  EXPECT_EQ(cut.masked.losses, want.masked.losses);
  EXPECT_EQ(number(cut, "masked", "all", "tokens"), 126);
  EXPECT_EQ(number(cut, "masked", "all", "masks"), 19);  // 15 %
  EXPECT_EQ(number(cut, "lens", 0, "loss"), number(want, "lens", 0, "loss"));
  EXPECT_EQ(number(cut, "causes", "position 1", "removed"),
            number(want, "causes", "position 1", "removed"));
  request.tokenize.max_tokens = 0;
  const Observed windows =
      observe_all({run_of(encoder, "", {.overflow = Overflow::kWindow})}, texts, request).at(0);
  EXPECT_EQ(why_missing(windows, "causes"), "a text was run in overlapping windows");
  EXPECT_EQ(why_missing(windows, "masked"), "");
}

TEST(ManyTest, LongerThanTrainedASinusoidGoesOnAndATableNeedsAPolicy) {
  Encoder a = encoder_of("sinusoidal"), b = encoder_of("learned");
  const auto runs = observe_masked({run_of(a), run_of(b)}, {kText}, all_lines(), {"longer"});
  const std::vector<std::vector<std::string>> want = {
      {"128", "192", "256"},
      {"128", "192 clamp", "192 interpolate", "192 window", "256 clamp", "256 interpolate",
       "256 window"}};
  for (size_t side = 0; side < 2; ++side) {
    const Table& table = runs[side].tables.at("longer");
    std::vector<std::string> lengths;
    for (const Row& row : table.rows) {
      lengths.push_back(row.label);
      for (const char* column : {"masks", "tokens"}) {  // the same at every length
        EXPECT_EQ(row.cells.at(table.column(column)), number(runs[0], "longer", "128", column));
      }
      EXPECT_GT(row.cells.at(table.column("loss")), 1);
    }
    EXPECT_EQ(lengths, want[side]);
  }
}

TEST(ManyTest, AModelIsNotMovedFromItself) {
  Encoder encoder = encoder_of("learned");
  const auto runs = observe_all({run_of(encoder), run_of(encoder)}, {kText, kOther});
  ASSERT_GT(runs[0].tables.size(), 10u);
  for (const auto& [view, table] : runs[0].tables) {
    const Table& other = runs[1].tables.at(view);
    ASSERT_EQ(table.rows.size(), other.rows.size());
    for (size_t r = 0; r < table.rows.size(); ++r) {
      EXPECT_TRUE(std::ranges::equal(table.rows[r].cells, other.rows[r].cells, same_number))
          << view << r;
    }
  }
  for (const Row& row : runs[1].tables.at("moved").rows) {
    EXPECT_NEAR(row.cells[0], 0, 1e-12);
    EXPECT_EQ(row.cells[2], 0);
  }
}

TEST(ManyTest, RunsThatCutATextToDifferentLengthsHaveNotMoved) {
  Encoder encoder = encoder_of("learned");
  const ModelConfig& config = encoder.model().config();
  const std::vector<float> rows(4 * config.d_model, 0.5f);
  const RunOptions whole = {.overflow = Overflow::kTruncate};
  RunOptions cut = whole;
  cut.positions = Positions::table({.rows = 4, .d_model = config.d_model, .values = rows});
  const std::vector<lens::Run> subjects = {run_of(encoder, "whole", whole),
                                           run_of(encoder, "cut", cut)};
  const lens::ObserveOptions request = asking_for({"moved"});
  EXPECT_NE(why_missing(observe_all(subjects, {kText, kOther}, request)[1], "moved"), "");
  const std::vector<Observed> runs = observe(subjects, {.text = kText}, request);
  EXPECT_NE(runs.at(0).num_tokens, runs.at(1).num_tokens);
  EXPECT_NE(why_missing(runs.at(1), "moved"), "");
  // Runs of one model are given the same tokens: those that the first can take.
  const std::vector<Observed> same = observe({subjects[1], subjects[0]}, {.text = kText}, request);
  EXPECT_EQ(same.at(1).num_tokens, 4);
  EXPECT_EQ(why_missing(same.at(1), "moved"), "");
}

TEST(ManyTest, ModelsWithoutHeadOrTokenizerAnswerWhatTheyCan) {
  Encoder small(load_checkpoint(small_config_json(), small_tensors())), none = encoder_of("none");
  const std::vector<lens::Run> two = {run_of(small, "small"), run_of(none, "none")};
  const std::vector<lens::Text> ids = {{.token_ids = std::vector<int32_t>{1, 2, 3}}};
  const std::vector<std::string> lines = {kText};
  lens::ObserveOptions request = asking_for();
  request.masked = lines;
  const std::vector<Measured> runs = means_of(two, ids, request);
  EXPECT_TRUE(runs[1].other_tokens);  // there, ids mean pieces
  EXPECT_EQ(why_missing(runs[1], "moved"), "the two tokenizers make different tokens");
  EXPECT_GT(number(runs[0], "norm", 1, "norm"), 0);
  EXPECT_NE(why_missing(runs[0], "masked").find("head"), std::string::npos);
  EXPECT_EQ(why_missing(runs[0], "lens"), why_missing(runs[0], "masked"));
  EXPECT_EQ(why_missing(runs[1], "masked"), "");
  EXPECT_EQ(number(runs[1], "masked", "all", "masks"), 1);

  const TempFolder other;  // without a tokenizer
  for (const char* file : {"config.json", "model.safetensors"})
    other.write(file, read_text_file(std::filesystem::path(bundled_model("none")) / file));
  Encoder large(Model::load(other.path()));
  const auto shapes = means_of(std::vector{run_of(small, "small"), run_of(large, "large")}, ids,
                               asking_for({"moved"}));
  EXPECT_EQ(why_missing(shapes[1], "moved"), "the two models have different shapes");
}

}  // namespace
}  // namespace phasor::internal
