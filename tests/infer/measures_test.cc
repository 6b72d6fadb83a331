// What is measured of a text: the library's numbers, through interventions, and of unusual texts.
#include "infer/cli/input_options.h"
#include "lens/order.h"
#include "tests/lens/observing.h"
#include "tests/support/family_files.h"

namespace infer {
namespace {

using namespace phasor;
using namespace phasor::internal;

constexpr double kRounding = 1e-5;  // of float32, where sums depend on the batch

Trace states_of(Encoder& encoder, const std::vector<int32_t>& ids, RunOptions options = {}) {
  Trace trace = residual_trace();
  options.observer = &trace;
  encoder.encode_ids(ids, options);
  return trace;
}

double degrees_between(std::span<const float> a, std::span<const float> b) {
  double along = 0, aa = 0, bb = 0;
  for (size_t c = 0; c < a.size(); ++c) {
    along += static_cast<double>(a[c]) * static_cast<double>(b[c]);
    aa += std::pow(static_cast<double>(a[c]), 2);
    bb += std::pow(static_cast<double>(b[c]), 2);
  }
  return std::atan2(std::sqrt(std::max(aa * bb - along * along, 0.0)), along) * 180 / M_PI;
}

/// The mean over the tokens of states [T, 128], those of b in the order of `places`, where given.
double mean_degrees(const std::vector<float>& a, const std::vector<float>& b,
                    const std::vector<size_t>& places = {}) {
  double sum = 0;
  const size_t tokens = a.size() / 128;
  for (size_t t = 0; t < tokens; ++t)
    sum += degrees_between(std::span(a).subspan(t * 128, 128),
                           std::span(b).subspan((places.empty() ? t : places[t]) * 128, 128));
  return sum / static_cast<double>(tokens);
}

using Cells = std::vector<std::pair<const char*, double>>;  // a column, and its number

void expect_cells(const Observed& text, const char* view, int64_t layer, const Cells& cells,
                  double error = kRounding) {
  for (const auto& [column, want] : cells)
    EXPECT_NEAR(number(text, view, layer, column), want, error) << view << layer << column;
}

TEST(MeasuresTest, LayersAreWhatTheLibrarySays) {
  Encoder encoder = encoder_of("learned");
  const Observed text = observe(encoder, kText);
  const std::vector<int32_t>& ids = text.tokens.ids;
  EXPECT_EQ(text.text_tokens, (std::vector<int64_t>{1, 2, 3, 4, 5}));
  const Trace with = states_of(encoder, ids);
  const Trace without = states_of(encoder, ids, {.positions = Positions().averaged()});
  const Trace zero = states_of(encoder, ids, {.positions = Positions::none()});
  lens::ObserveOptions against_zero = asking_for({"effect"});
  against_zero.without = "zero";
  const Observed other = observe(encoder, kText, against_zero);
  const auto splits = latin_square_split(encoder, ids, text.text_tokens);
  const std::vector<DirectPath> direct = direct_path(encoder.model(), with);
  for (int64_t l = 0; l <= 6; ++l) {
    const std::vector<float>& state = with.hidden_state(l).values;
    const TokenSplit& split = splits[l];
    const auto effect = [&](const Trace& of) {
      return mean_cosine_distance(state, of.hidden_state(l).values, 128);
    };
    expect_cells(text, "norm", l, {{"norm", mean_norm(state, 128)}}, 1e-4);
    expect_cells(text, "effect", l, {{"effect", effect(without)}});
    expect_cells(other, "effect", l, {{"effect", effect(zero)}});
    expect_cells(text, "effect", l,
                 {{"degrees", mean_degrees(state, without.hidden_state(l).values)}}, 0.01);
    expect_cells(text, "split", l,
                 {{"position", split.position},
                  {"token", split.token},
                  {"both", split.both},
                  {"context", split.context}});
    // Of the five words, the third alone is not next to [CLS] or [SEP], or once removed.
    const std::vector<double>& squares = split.position_squares;
    const double all = std::accumulate(squares.begin(), squares.end(), 0.0);
    expect_cells(text, "split", l,
                 {{"edge", 1 - squares[2] / all},
                  {"stable_rank", stable_rank(split.position_means, 128)},
                  {"smoothness", smoothness(split.position_means, 128)}},
                 1e-3);
    expect_cells(
        text, "direct", l,
        {{"position", direct[l].position.norm}, {"position_share", direct[l].position.alignment}});
  }
  const std::vector<float> a = pool(with.hidden_state(6).values, 128, {});
  const std::vector<float> b = pool(without.hidden_state(6).values, 128, {});
  EXPECT_EQ(text.tables.at("effect").note,
            fmt::format("The text's pooled vector: {:.3f} ({:.0f}°).",
                        mean_cosine_distance(a, b, 128), degrees_between(a, b)));
}

/// Texts of one call, the first of them with their arrays.
std::vector<Observed> observe_texts(Encoder& encoder, const std::vector<std::string>& texts,
                                    const RunOptions& options = {}, int64_t arrays_of = 8) {
  const lens::Run run{.encoder = &encoder, .options = options};
  lens::ObserveOptions asked = asking_for({"effect"});
  asked.arrays_of = arrays_of;
  std::vector<Observed> all;
  lens::observe({&run, 1}, make_texts({}, texts), asked, [&](std::vector<Observed>&& runs) {
    all.push_back(std::move(runs[0]));
    return true;
  });
  return all;
}

TEST(MeasuresTest, PositionsTurnEachStateByTheAngleToThatOfARunWithoutThem) {
  Encoder encoder = encoder_of();
  const Observed text = observe_texts(encoder, {kText})[0];
  const Trace with = states_of(encoder, text.tokens.ids);
  const Trace without = states_of(encoder, text.tokens.ids, {.positions = Positions().averaged()});
  ASSERT_EQ(std::ssize(text.turns), 7 * text.num_tokens);
  for (int64_t l = 0; l <= 6; ++l) {
    for (int64_t t = 0; t < text.num_tokens; ++t) {
      const auto row = [&](const Trace& of) {
        return std::span(of.hidden_state(l).values).subspan(t * 128, 128);
      };
      EXPECT_NEAR(text.turns[l * text.num_tokens + t], degrees_between(row(with), row(without)),
                  0.01);
    }
  }
  EXPECT_TRUE(text.apart.empty());
  Encoder none = encoder_of("none");
  const Observed without_any = observe_texts(none, {kText})[0];
  for (const float turn : without_any.turns) EXPECT_EQ(turn, 0);
  for (int64_t l = 0; l <= 6; ++l) EXPECT_EQ(number(without_any, "effect", l, "degrees"), 0);
}

const std::vector<std::string> kTwoOrders = {"Tom bit a dog a", "a dog bit a Tom"};

TEST(MeasuresTest, TwoOrdersOfTheSameTokensAreApartByThePlacesOfTheirWords) {
  Encoder encoder = encoder_of();
  const std::vector<Observed> texts = observe_texts(encoder, kTwoOrders);
  EXPECT_TRUE(texts[0].apart.empty());
  ASSERT_EQ(texts[1].apart.size(), 14u);
  const Trace a = states_of(encoder, texts[0].tokens.ids),
              b = states_of(encoder, texts[1].tokens.ids);
  for (int64_t l = 0; l <= 6; ++l) {
    const double apart = mean_degrees(a.hidden_state(l).values, b.hidden_state(l).values,
                                      {0, 5, 3, 1, 2, 4, 6});  // in b, of a's tokens
    EXPECT_NEAR(texts[1].apart[l], apart, 0.01);
    EXPECT_LT(texts[1].apart[7 + l], 0.01) << "without positions order tells nothing";
  }
  EXPECT_EQ(observe_texts(encoder, kTwoOrders, {}, 0)[1].apart, texts[1].apart);
  EXPECT_TRUE(observe_texts(encoder, kTwoOrders, {}, 0)[1].turns.empty());
  for (const std::vector<std::string>& others : {std::vector{kTwoOrders[0], kTwoOrders[0]},
                                                 {kTwoOrders[0], kText},
                                                 {kText, "Tom bit"},
                                                 {kTwoOrders[0], kTwoOrders[1], kText}}) {
    for (const Observed& text : observe_texts(encoder, others)) EXPECT_TRUE(text.apart.empty());
  }
}

TEST(MeasuresTest, OfTwoOrdersItSaysWhetherAndWhereTheModelTellsThemApart) {
  const auto said = [](Encoder& encoder, const RunOptions& options = {}) {
    const Observed second = observe_texts(encoder, kTwoOrders, options, 0)[1];
    EXPECT_TRUE(lens::to_json({&second, 1}).find(say_pair(second)) != std::string::npos);
    return say_pair(second);
  };
  Encoder none = encoder_of("none"), sinusoidal = encoder_of();
  EXPECT_EQ(said(none),
            "Both texts are the same to this model: nothing tells it the order of the words.");
  const std::vector<size_t> places = {0, 5, 3, 1, 2, 4, 6};
  const auto apart = [&](Encoder& encoder, const RunOptions& options) {
    std::vector<Trace> of;
    for (const std::string& text : kTwoOrders)
      of.push_back(states_of(encoder, encoder.model().tokenizer().encode(text).ids, options));
    std::vector<double> degrees;
    for (int64_t l = 0; l <= 6; ++l)
      degrees.push_back(
          mean_degrees(of[0].hidden_state(l).values, of[1].hidden_state(l).values, places));
    return degrees;
  };
  const std::vector<double> with = apart(sinusoidal, {});
  size_t most = 1;
  for (size_t l = 2; l <= 6; ++l) {
    if (with[l] - with[l - 1] > with[most] - with[most - 1]) most = l;
  }
  ASSERT_LT(most, 6u);
  EXPECT_EQ(
      said(sinusoidal),
      fmt::format(
          "Without positions both texts are the same to this model. With them, layer "
          "{} does most to tell who stands before whom: it takes the same words from {:.0f}° to "
          "{:.0f}° apart; after the last layer it is {:.0f}°.",
          most, with[most - 1], with[most], with[6]));
  const RunOptions causal = {.positions = Positions().masked(AttentionMask::kCausal)};
  const double last = apart(none, causal)[6];
  EXPECT_GT(last, 1);
  EXPECT_EQ(said(none, causal),
            fmt::format("Even without positions this model tells the two orders of these words "
                        "apart, by {0:.0f}° in the last layer, as one does whose tokens read only "
                        "those before them; with positions by {0:.0f}°.",
                        last));

  Observed made;  // up
  EXPECT_EQ(say_pair(made), "");
  const std::string begin = "Without positions both texts are the same to this model. With them, ";
  made.apart = {20, 20, 20.05f, 0, 0, 0.05f};
  EXPECT_EQ(say_pair(made),
            begin + "the same words are 20° apart in the embedding, and 20° after the last layer.");
  made.apart = {0.5f, 1, 30, 0, 0, 0};
  EXPECT_EQ(say_pair(made), begin +
                                "layer 2 does most to tell who stands before whom: it takes "
                                "the same words from 1° to 30° apart.");
}

TEST(MeasuresTest, HeadsAndScoresAreWhatTheLibrarySays) {
  Encoder encoder = encoder_of();
  const Observed text = observe(encoder, kText);
  const std::vector<int32_t>& ids = text.tokens.ids;
  Trace patterns{Hook::kPattern};
  encoder.encode_ids(ids, {.observer = &patterns});
  const std::vector<int64_t> special = {0, 6};
  const std::vector<std::string>& offsets = text.tables.at("offsets").columns;
  ASSERT_EQ(offsets.size(), 13u);
  EXPECT_EQ(text.tables.at("attention").rows.size(), 6u);  // none of the embedding
  for (int64_t l = 1; l <= 6; ++l) {
    const auto heads = head_profiles(patterns.at(Hook::kPattern, l - 1).values, 4, 7, special);
    double distance = 0, entropy = 0;
    for (int64_t h = 0; h < 4; ++h) {
      const HeadProfile& want = heads[h];
      const Row* const row = text.tables.at("heads").find({.layer = l, .head = h + 1, .cells = {}});
      ASSERT_NE(row, nullptr);
      const std::vector<double> cells = {want.previous,      want.next,
                                         want.self,          want.first,
                                         want.special,       want.positional_share,
                                         want.mean_distance, want.entropy_share,
                                         want.text_previous, want.text_next};
      for (size_t c = 0; c < cells.size(); ++c)
        EXPECT_NEAR(row->cells[c], cells[c], 1e-4) << l << h << c;
      EXPECT_EQ(text.heads[l - 1][h].by_offset.size(), 13u);
      distance += want.mean_distance / 4;
      entropy += want.entropy_share / 4;
    }
    EXPECT_NEAR(number(text, "attention", l, "distance"), distance, 1e-4);
    EXPECT_NEAR(number(text, "attention", l, "entropy"), entropy, 1e-4);
    double sum = 0, reach = 0;
    for (const std::string& offset : offsets) {
      const int size = std::abs(std::stoi(offset));
      const double share = number(text, "offsets", l, offset.c_str()) * (7 - size) / 7;
      sum += share;
      reach += share * size;
    }
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_NEAR(reach, number(text, "attention", l, "distance"), 1e-9);
  }

  ScoreTrace trace;
  encoder.encode_ids(ids, {.observer = &trace});
  const ScoreTerms terms = first_layer_scores(encoder.model(), trace);
  EXPECT_NEAR(number(text, "scores", "all", "pp"), score_shares(terms).position_position, 1e-4);
  EXPECT_NEAR(number(text, "scores", "1.3", "tp"), score_shares(terms, 2).token_position, 1e-4);
}

TEST(MeasuresTest, OrdersAreThoseOfTheSeedAndKeepSpecialTokensInPlace) {
  Encoder encoder = encoder_of();
  lens::ObserveOptions request = asking_for({"order"});
  request.seed = 5;
  const Observed text = observe(encoder, kText, request);
  const std::vector<int32_t>& ids = text.tokens.ids;
  const std::vector<int64_t>& places = text.text_tokens;
  const std::map<const char*, std::vector<int64_t>> orders = {
      {"swap", swapped_order(7, places, 5)},
      {"pairs", shuffled_ngrams_order(7, places, 2, 5)},
      {"reverse", {0, 5, 4, 3, 2, 1, 6}},
      {"shuffle", shuffled_order(7, places, 5)}};
  const Trace states = states_of(encoder, ids);
  for (const auto& [kind, order] : orders) {
    const Trace moved = states_of(encoder, reordered(ids, order));
    for (int64_t l = 0; l <= 6; ++l) {
      EXPECT_NEAR(number(text, "order", l, kind),
                  order_sensitivity(states.hidden_state(l).values, moved.hidden_state(l).values,
                                    order, 128),
                  kRounding)
          << kind << l;
    }
  }
  EXPECT_EQ(text.table("split"), nullptr);
  EXPECT_EQ(text.table("attention"), nullptr);
}

/// The run with the interventions of a command line, whose states must be as the library makes them
/// with `options`.
Observed intervene(Encoder& encoder, const Interventions& interventions,
                   const RunOptions& options) {
  const Observed after = observe(before_and_after(run_of(encoder), interventions), {.text = kText},
                                 asking_for({"direct", "moved"}))
                             .at(1);
  const Trace want = states_of(encoder, after.tokens.ids, options);
  const Trace before = states_of(encoder, after.tokens.ids);
  for (int64_t l = 0; l <= 6; ++l) {
    const std::vector<float>& state = want.hidden_state(l).values;
    expect_cells(after, "norm", l, {{"norm", mean_norm(state, 128)}}, 1e-4);
    const double distance = mean_cosine_distance(state, before.hidden_state(l).values, 128);
    expect_cells(after, "moved", l, {{"distance", distance}});
    expect_cells(after, "moved", l,
                 {{"degrees", mean_degrees(state, before.hidden_state(l).values)}}, 0.01);
  }
  return after;
}

TEST(MeasuresTest, EveryEditIsTheRunThatTheLibraryMakesOfIt) {
  const TempFolder folder;
  PositionTable table{.rows = 16, .d_model = 128, .values = std::vector<float>(16 * 128)};
  for (size_t i = 0; i < table.values.size(); ++i)
    table.values[i] = std::sin(static_cast<float>(i));
  const std::string file =
      folder.write("table.safetensors",
                   safetensors_bytes({{"positions", {16, 128}, "F32", float_bytes(table.values)}}));
  Encoder encoder = encoder_of("learned");
  const std::vector<std::pair<std::vector<std::string>, Positions>> edits = {
      {{"zero"}, Positions().scaled(0)},
      {{"mean"}, Positions().averaged()},
      {{"scale=0.5"}, Positions().scaled(0.5f)},
      {{"shift=3"}, Positions().shifted(3)},
      {{"swap=1,4"}, Positions().swapped(1, 4)},
      {{"reverse"}, Positions().reversed()},
      {{"shuffle=7"}, Positions().shuffled(7)},
      {{"repeat"}, Positions().repeated()},
      {{"swap=0,2", "shift=1", "reverse"}, Positions().swapped(0, 2).shifted(1).reversed()},
      {{"reverse", "table=" + file}, Positions::table(table).reversed()}};
  for (const auto& [words, positions] : edits) {
    SCOPED_TRACE(words.front());
    const Observed after =
        intervene(encoder, {.edits = words, .cuts = {}}, {.positions = positions});
    EXPECT_EQ(after.positions, words.back() == edits.back().first.back() ? "table" : "learned");
    EXPECT_GT(number(after, "moved", 6, "distance"), 1e-4);
  }
  const Observed same = intervene(encoder, {.edits = {"scale=1", "shift=0"}, .cuts = {}}, {});
  for (int64_t l = 0; l <= 6; ++l) {
    expect_cells(
        same, "moved", l,
        {{"distance", 0}, {"degrees", 0}, {"relative", 0}, {"largest", 0}, {"least_cosine", 1}},
        1e-12);
  }
}

TEST(MeasuresTest, ACutResidualConnectionEndsTheDirectPath) {
  Encoder encoder = encoder_of();
  const Observed before = observe(encoder, kText);
  using Site = ResidualCut::Site;
  const std::map<std::string, ResidualCut> cuts = {
      {"2.attn", {.layer = 1, .site = Site::kAttention}},
      {"1", {.layer = 0, .site = Site::kBoth}},
      {"1.mlp", {.layer = 0, .site = Site::kMlp}}};
  for (const auto& [word, cut] : cuts) {
    const Observed after =
        intervene(encoder, {.edits = {}, .cuts = {word}}, {.cut_residuals = {cut}});
    EXPECT_EQ(after.cut_residuals, std::vector<std::string>{word});
    for (int64_t l = 0; l <= 6; ++l) {
      const double length = number(before, "direct", l, "position");
      EXPECT_GT(length, 0.01);
      EXPECT_EQ(number(after, "direct", l, "position"), l <= cut.layer ? length : 0.0) << word << l;
    }
  }
}

TEST(MeasuresTest, WhatCannotBeMeasuredHasAReason) {
  Encoder encoder = encoder_of(), learned = encoder_of("learned");
  Encoder int8 = encoder_of("learned", Precision::kInt8), none = encoder_of("none");
  for (const Observed& text :
       {observe(encoder, kText, asking_for(), {.positions = Positions::none()}),
        observe(none, kText)}) {
    EXPECT_EQ(text.positions, "none");
    EXPECT_EQ(why_missing(text, "direct"), "no position vector is added");
    EXPECT_EQ(why_missing(text, "relative"), "nothing depends on offsets");
    EXPECT_EQ(number(text, "scores", "all", "pp"), 0);
    EXPECT_EQ(number(text, "effect", 6, "effect"), 0);
    EXPECT_TRUE(text.position_vectors.empty());
  }
  for (const std::vector<int32_t>& ids : {std::vector<int32_t>{5}, {2, 3}, {2, 1090, 3}}) {
    const Observed text = observe_ids(encoder, ids);
    for (const char* view : {"order", "split"})
      EXPECT_EQ(why_missing(text, view), "the text has no two tokens that could change places");
    EXPECT_GT(number(text, "direct", 1, "position"), 0);
  }
  std::vector<int32_t> ids;
  for (int i = 0; i < 150; ++i) ids.push_back(10 + i % 40);
  const Observed windows =
      observe_ids(learned, ids, asking_for({"direct", "attention", "scores", "relative"}),
                  {.overflow = Overflow::kWindow});
  for (const char* view : {"direct", "heads", "scores", "relative"})
    EXPECT_EQ(why_missing(windows, view), "the text was run in overlapping windows");
  EXPECT_GT(number(windows, "attention", 2, "distance"), 1);
  EXPECT_TRUE(windows.heads.empty());
  EXPECT_TRUE(windows.position_vectors.empty());
  const Observed rounded = observe(int8, kText);
  EXPECT_EQ(why_missing(rounded, "scores"), "measured only in f32");
  EXPECT_EQ(why_missing(rounded, "relative"), "of added vectors, measured only in f32");
}

TEST(MeasuresTest, EveryFamilyIsObserved) {
  for (const FamilyCase& family : all_families()) {
    SCOPED_TRACE(family.config.dump());
    Encoder encoder(random_model(family.meaning, 7, family.extras));
    const std::vector<ResidualCut> cut = {{.layer = 0, .site = ResidualCut::Site::kMlp}};
    const bool adds = family.meaning.position.kind != PositionKind::kNone;
    for (const std::vector<ResidualCut>& cuts : {{}, cut}) {
      const Observed text =
          observe_ids(encoder, {3, 4, 5, 6, 3}, asking_for(), {.cut_residuals = cuts});
      EXPECT_EQ(why_missing(text, "direct").empty(), adds);
      const bool normed = family.meaning.qk_norm, capped = family.meaning.score_cap > 0;
      const std::string why = normed   ? "the model norms its queries and keys"
                              : capped ? "the model caps its scores"
                                       : "";
      EXPECT_EQ(why_missing(text, "relative"), why);
      EXPECT_EQ(why_missing(text, "scores"), why);
      for (const auto& [name, table] : text.tables) {
        for (const Row& row : table.rows) {
          for (const double cell : row.cells) {
            const bool may_lack = name == "relative" || name == "sources" || name == "parts" ||
                                  (name == "split" && row.cells[0] <= 0);  // no edge
            EXPECT_TRUE(std::isfinite(cell) || may_lack) << name << row.layer;
          }
        }
      }
      for (const char* view : {"split", "scores"}) {  // shares
        if (!text.tables.contains(view)) continue;
        for (const Row& row : text.tables.at(view).rows) {
          double sum = 0;
          for (int c = 0; c < phasor::internal::view(view).series; ++c) sum += row.cells[c];
          EXPECT_NEAR(sum, 1, 1e-6) << view << row.layer << row.label;
        }
      }
    }
  }
}

TEST(MeasuresTest, SourcesSumToOneAndAreNoneWithoutPositions) {
  phasor::Encoder learned = encoder_of("learned"), none = encoder_of("none");
  const lens::ObserveOptions request = asking_for({"sources"});
  const Observed with = observe(learned, kText, request), without = observe(none, kText, request);
  const Observed split = observe(learned, kText, asking_for({"split"}));
  const auto want =
      phasor::position_sources(learned, with.tokens.ids, with.text_tokens, {}, 4, request.seed);
  for (int64_t l = 0; l <= 6; ++l) {
    double sum = 0;
    for (const char* source : {"direct", "attention", "mlp", "other"}) {
      sum += number(with, "sources", l, source);
      EXPECT_TRUE(std::isnan(number(without, "sources", l, source))) << l << source;
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    const phasor::PositionSources& state = want.at(l);
    const Cells lengths = {{"direct_length", state.direct.length},
                           {"attention_length", state.attention.length},
                           {"mlp_length", state.mlp.length},
                           {"other_length", state.other.length}};
    expect_cells(with, "sources", l, lengths, 1e-6);
    // What is left of a short text's component is at its edges: [CLS] w w (w) w w [SEP].
    double interior = 0;
    for (const char* source : {"direct", "attention", "mlp", "other"})
      interior += number(with, "sources", l, (std::string(source) + "_interior").c_str());
    EXPECT_NEAR(interior, 1 - number(split, "split", l, "edge"), 0.02) << l;
    for (const auto& [source, length] : lengths)
      EXPECT_TRUE(std::isnan(number(without, "sources", l, source))) << l << source;
  }
  EXPECT_EQ(view("sources").sentence(*without.table("sources")), "");
  EXPECT_NE(view("sources").sentence(*with.table("sources")), "");
}

TEST(MeasuresTest, PartsSumToTheirSources) {
  phasor::Encoder encoder = encoder_of("learned");
  const Observed text = observe(encoder, kOther, asking_for({"sources", "parts"}));
  const auto of = [&](const char* part, int64_t l, const char* column) {
    return number(text, "parts", fmt::format("{} {}", part, l), column);
  };
  double attention = 0, mlp = 0;
  for (int64_t l = 1; l <= 6; ++l) {
    attention += of("attention", l, "last_layer");
    mlp += of("MLP", l, "last_layer");
    double own = 0, last = 0;
    for (int64_t h = 1; h <= 4; ++h) {
      own += number(text, "parts", fmt::format("head {}.{}", l, h), "own_layer");
      last += number(text, "parts", fmt::format("head {}.{}", l, h), "last_layer");
    }
    // The rest is the bias, which has a share where LayerNorms scale it by how far states vary.
    EXPECT_NEAR(own, of("attention", l, "own_layer"), 0.02) << l;
    EXPECT_NEAR(last, of("attention", l, "last_layer"), 0.02) << l;
  }
  EXPECT_NEAR(attention, number(text, "sources", 6, "attention"), 1e-9);
  EXPECT_NEAR(mlp, number(text, "sources", 6, "mlp"), 1e-9);
  EXPECT_NEAR(number(text, "parts", "direct path", "last_layer"),
              number(text, "sources", 6, "direct"), 1e-9);
  EXPECT_NEAR(of("attention", 1, "own_layer"), number(text, "sources", 1, "attention"), 1e-9);
  EXPECT_NEAR(of("MLP", 1, "own_layer"), number(text, "sources", 1, "mlp"), 1e-9);
  // By head, the sources are those of the same orders.
  const Observed whole = observe(encoder, kOther, asking_for({"sources"}));
  for (const char* source : {"direct", "attention", "mlp", "other"})
    EXPECT_NEAR(number(whole, "sources", 5, source), number(text, "sources", 5, source), 1e-6);
}

}  // namespace
}  // namespace infer
