// Observing as a function of the library: what it refuses, hands over, reports and ends with.
#include <stop_token>

#include "tests/lens/observing.h"

namespace phasor::internal {
namespace {

using Words = std::vector<std::string>;

/// All texts in one run.
std::vector<Observed> take_all(Encoder& encoder, std::span<const lens::Text> texts,
                               const lens::ObserveOptions& options) {
  std::vector<Observed> all;
  const lens::Run run = run_of(encoder);
  lens::observe({&run, 1}, texts, options, [&](std::vector<Observed>&& runs) {
    all.push_back(std::move(runs.at(0)));
    return true;
  });
  return all;
}

TEST(ObserveTest, RefusesWhatItCannotObserveAndSaysWhatIsLacking) {
  Encoder encoder = encoder_of();
  const lens::Run run = run_of(encoder);
  const lens::Text text{.text = kText};
  const std::vector<std::string> lines = {kText};
  const auto fails = [&](std::vector<lens::Run> runs, const lens::ObserveOptions& options,
                         std::vector<std::string> words, bool means = false) {
    expect_error<InvalidArgument>(
        [&] {
          if (means)
            lens::observe_means(runs, {&text, 1}, options);
          else
            lens::observe(runs, {&text, 1}, options, [](auto&&) { return true; });
        },
        words);
  };
  fails({}, {}, {"one run, or two"});
  fails({run, run, run}, {}, {"one run, or two", "3"});
  fails({{}}, {}, {"encoder"});
  fails({run}, {.views = {"splt"}}, {"splt", "views()"});
  fails({run}, {.views = {"moved"}}, {"moved", "two runs"});
  fails({run}, {.views = {"probe"}}, {"probe", "many texts"});
  fails({run}, {.views = {"pattern"}}, {"pattern", "by itself"}, true);
  fails({run}, {.views = {"masked"}}, {"masked", "lines"}, true);
  fails({run}, {.views = {"patched"}, .masked = lines}, {"patched", "two runs"}, true);
  fails({run}, {.without = "nothing"}, {"nothing"});
  fails({run}, {.baseline = {11}}, {"10", "11"});
  Trace trace = hidden_states();
  lens::Run observed = run;
  observed.options.observer = &trace;
  fails({observed}, {}, {"only positions, overflow and cut_residuals"});
  expect_error<InvalidArgument>([&] { lens::observe_means({&run, 1}, {}, {}); }, {"texts"});
}

TEST(ObserveTest, WithoutNamesThereIsAllThatLacksNothingAndIsNotSlow) {
  Encoder encoder = encoder_of();
  const std::vector<Observed> texts =
      take_all(encoder, std::vector<lens::Text>{{.text = kText}}, {});
  for (const View& view : lens::views()) {
    if (view.columns.empty()) continue;
    EXPECT_EQ(texts.at(0).table(view.name) != nullptr, view.needs == Needs::kNothing && !view.slow)
        << view.name;
  }
  EXPECT_EQ(texts[0].patterns.size(), 6u);  // of the view "pattern"
}

TEST(ObserveTest, ViewsThatLackSomethingAreLeftOutIfAsked) {
  Encoder encoder = encoder_of();
  const std::vector<lens::Run> run = {run_of(encoder)};
  const auto views = [&](const std::vector<std::string>& names, bool means) {
    std::vector<std::string> asked;
    for (const View* view : request_of(run, asking_for(names), means).views)
      asked.emplace_back(view->name);
    return asked;
  };
  EXPECT_EQ(views({"moved", "corpus", "effect", "pattern"}, false), (Words{"effect", "pattern"}));
  EXPECT_EQ(views({"moved", "corpus", "effect", "pattern"}, true), (Words{"effect", "corpus"}));
  EXPECT_EQ(views({"masked"}, true), Words());
  for (const View& view : lens::views()) {
    const bool allowed = view.needs == Needs::kNothing || view.needs == Needs::kOneText;
    EXPECT_EQ(std::ranges::count(views({"all"}, false), view.name), allowed) << view.name;
  }
}

TEST(ObserveTest, RunsAreNamedByWhatTheyDifferIn) {
  Encoder encoder = encoder_of();
  const auto labels = [&](const Words& given, const Words& names, int64_t untrained = 0) {
    std::vector<lens::Run> runs;
    for (size_t i = 0; i < given.size(); ++i)
      runs.push_back({.encoder = &encoder, .label = given[i], .name = names[i]});
    Words found;
    const lens::ObserveOptions options{.views = {"norm"}, .baseline = {untrained}};
    for (const Observed& each : observe(runs, {.text = kText}, options))
      found.push_back(each.label);
    return found;
  };
  EXPECT_EQ(labels({""}, {"a"}), Words{""});
  EXPECT_EQ(labels({""}, {"a"}, 1), (Words{"trained", "untrained"}));
  EXPECT_EQ(labels({"x", ""}, {"a", "b/c/"}), (Words{"x", "c"}));
  EXPECT_EQ(labels({"", ""}, {"b/c", "d/c"}), (Words{"b/c", "d/c"}));
  EXPECT_EQ(labels({"", ""}, {"b/c", "b/c"}), (Words{"b/c (1)", "b/c (2)"}));
  EXPECT_EQ(labels({"f32", "f32"}, {"a", "a"}), (Words{"a (1)", "a (2)"}));
  EXPECT_EQ(labels({"", ""}, {"", ""}), (Words{"", ""}));
}

TEST(ObserveTest, ATextIsTheSameWhateverStandsBesideIt) {
  Encoder encoder = encoder_of();
  std::vector<lens::Text> texts;
  for (int i = 0; i < 35; ++i) texts.push_back({.text = i % 2 == 0 ? kText : kOther});
  const lens::ObserveOptions options{.views = {"effect", "order"}, .seed = 7, .arrays_of = 2};
  const std::vector<Observed> all = take_all(encoder, texts, options);
  ASSERT_EQ(all.size(), texts.size());
  for (const size_t i : {0, 1, 2, 33, 34}) {
    lens::ObserveOptions alone = options;
    alone.seed += i;
    const Observed text = take_all(encoder, {&texts[i], 1}, alone).at(0);
    EXPECT_EQ(text.text, all[i].text);
    for (int64_t l = 0; l <= 6; ++l) {
      EXPECT_NEAR(number(text, "order", l, "shuffle"), number(all[i], "order", l, "shuffle"), 1e-5);
      EXPECT_NEAR(number(text, "effect", l, "effect"), number(all[i], "effect", l, "effect"), 1e-5);
    }
    EXPECT_EQ(all[i].patterns.empty(), i >= 2);
  }
}

TEST(ObserveTest, EndsWhenNoMoreIsWantedAndWithWhatIsThrown) {
  Encoder encoder = encoder_of();
  const lens::Run run = run_of(encoder);
  const std::vector<lens::Text> texts(40, {.text = kText});
  int taken = 0;
  const lens::ObserveOptions options{.views = {"norm"}};
  lens::observe({&run, 1}, texts, options, [&](auto&&) { return ++taken < 3; });
  EXPECT_EQ(taken, 3);
  EXPECT_THROW(lens::observe({&run, 1}, texts, options, [](auto&&) -> bool { throw 5; }), int);
  lens::ObserveOptions throws = options;
  throws.progress = [](std::string_view, int64_t, int64_t) { throw 6; };
  EXPECT_THROW(lens::observe_means({&run, 1}, texts, throws), int);
  EXPECT_EQ(take_all(encoder, {&texts[0], 1}, options).size(), 1u);  // the encoder is free again
}

TEST(ObserveTest, MeansReportTheirStagesOnTheCallersThreadAndCanBeStopped) {
  Encoder encoder = encoder_of();
  const lens::Run run = run_of(encoder);
  const std::vector<lens::Text> texts(3, {.text = kText});
  std::set<std::string> stages;
  std::stop_source stop;
  lens::ObserveOptions options{.views = {"split", "masked"}, .masked = few_lines()};
  options.stop = stop.get_token();
  options.progress = [&, caller = std::this_thread::get_id()](std::string_view stage, int64_t done,
                                                              int64_t total) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_LE(done, total);
    stages.emplace(stage);
    if (stage == "masked texts") stop.request_stop();
  };
  expect_code(ErrorCode::kCancelled, "", [&] { lens::observe_means({&run, 1}, texts, options); });
  EXPECT_EQ(stages, (std::set<std::string>{"texts", "orders", "masked texts"}));
}

TEST(ObserveTest, MeansHandOverTheFirstTextsAndCountWhatWasCut) {
  Encoder encoder = encoder_of();
  const std::vector<lens::Run> runs = {run_of(encoder, "a"),
                                       run_of(encoder, "b", {.positions = Positions::none()})};
  const std::vector<lens::Text> texts = {{.text = kText}, {.text = kOther}, {.text = kText}};
  lens::ObserveOptions options{.views = {"moved", "heads"}, .arrays_of = 2};
  options.tokenize.max_tokens = 7;
  std::vector<std::vector<Observed>> first;
  const std::vector<Observed> means =
      lens::observe_means(runs, texts, options, [&](std::vector<Observed>&& text) {
        first.push_back(std::move(text));
        return true;
      });
  ASSERT_EQ(first.size(), 2u);
  ASSERT_EQ(first[1].size(), 2u);
  EXPECT_EQ(first[1][1].text, kOther);
  EXPECT_EQ(first[1][1].patterns.at(5).size(), 4u * 7 * 7);
  ASSERT_EQ(means.size(), 2u);
  EXPECT_TRUE(means[1].means);
  EXPECT_EQ(means[1].num_texts, 3);
  EXPECT_EQ(means[1].num_tokens, 21);
  EXPECT_EQ(means[1].num_cut, 1);
  EXPECT_FALSE(means[1].other_tokens);
  EXPECT_GT(number(means[1], "moved", 6, "distance"), 0.01);
  EXPECT_EQ(means[0].table("moved"), nullptr);
}

}  // namespace
}  // namespace phasor::internal
