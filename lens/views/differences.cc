#include "lens/views/differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "lens/study/observed.h"

namespace phasor::internal {
namespace {

using lens::Observed;
using lens::Row;
using lens::Table;
using lens::View;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
/// Numbers below it are printed as <1e-5: what float32 leaves of 0 after some layers.
constexpr double kRounding = 1e-5;
constexpr size_t kMostOfOne = 3, kMostOfTwo = 6, kMostAlike = 2;  // conclusions; views

bool has_controls(std::span<const Observed> runs) { return runs.size() == 4; }

struct Number {
  double value = kNaN;
  Interval interval = {kNaN, kNaN};  // the value twice where there is none
  bool has_interval = false;
};

/// Of a column; without a key, of the leading one.
Number number_of(const Observed& run, const View& view, const Row& place,
                 const char* key = nullptr) {
  const Table* const table = run.table(view.name);
  const Row* const row = table == nullptr ? nullptr : table->find(place);
  const int64_t column =
      row == nullptr ? -1 : table->column(key == nullptr ? view.columns[view.lead].key : key);
  if (column < 0) return {};
  const double value = row->cells[column];
  if (row->intervals.empty() || std::isnan(row->intervals[column].low))
    return {value, {value, value}, false};
  return {value, row->intervals[column], true};
}

/// "48°"; empty where the view has no angles.
std::string angle_text(const Observed& run, const View& view, const Row& place) {
  const double degrees = number_of(run, view, place, "degrees").value;
  return std::isnan(degrees) ? "" : degrees_text(degrees);
}

/// Two numbers of one row; intervals that do not touch tell them apart, which is stricter than the
/// interval of their difference.
Difference compared(std::span<const Observed> runs, const View& view, const Row& row) {
  const Number a = number_of(runs[0], view, row), b = number_of(runs[1], view, row);
  Difference found{.view = &view,
                   .place = {row.layer, row.head, row.label, {}, {}},
                   .there = {a.value, b.value},
                   .untrained = {kNaN, kNaN}};
  double by_chance = 0;
  if (has_controls(runs)) {
    for (size_t side = 0; side < 2; ++side)
      found.untrained[side] = number_of(runs[side + 2], view, row).value;
    by_chance = std::abs(found.untrained[0] - found.untrained[1]);
    if (std::isnan(by_chance)) by_chance = 0;
  }
  const double apart = std::abs(a.value - b.value);
  const double most = std::max(std::abs(a.value), std::abs(b.value));
  const bool of_many = runs[0].means && runs[0].num_texts > 1;
  const bool told = a.interval.high < b.interval.low || b.interval.high < a.interval.low;
  const bool known = a.has_interval || b.has_interval;
  if (!(apart > kRounding * std::max(most, 1.0))) return found;
  found.excess = apart - by_chance;
  found.certainty = of_many && !(known && told) ? Certainty::kNotTold
                    : apart <= by_chance        ? Certainty::kUntrained
                                                : Certainty::kDiffers;
  return found;
}

std::string where(const Row& place, const View& view) {
  if (place.layer < 0) return fmt::format(", {} {}", view.row_name, place.label);
  return place.layer == 0 ? " in the embedding" : fmt::format(" in layer {}", place.layer);
}

/// Views have different units, so that they are compared by this.
double share_of(const Difference& it) {
  return it.excess / std::max(std::abs(it.there[0]), std::abs(it.there[1]));
}

/// Of one model's runs alone: the axes of two models need not agree.
std::optional<Conclusion> say_states(std::span<const Observed> runs) {
  if (runs[0].model != runs[1].model) return std::nullopt;
  const View& moved = view("moved");
  const Table* const table = runs[1].table(moved.name);
  if (table == nullptr || table->rows.empty()) return std::nullopt;
  const Row& last = table->rows.back();
  const double apart = number_of(runs[1], moved, last).value;
  const std::string states =
      fmt::format("The last states of {} and {}", runs[0].label, runs[1].label);
  if (apart < 1e-6) return Conclusion{states + " are the same.", {&moved}};
  const std::string untrained = has_controls(runs) ? angle_text(runs[3], moved, last) : "";
  return Conclusion{
      fmt::format("{} differ by {} on average (1 − cosine {}){}{}.", states,
                  angle_text(runs[1], moved, last), small_number(apart),
                  untrained.empty() ? "" : ", those with random weights by ", untrained),
      {&moved}};
}

/// A run's largest number above the embedding, and its layer; 0: there are no two layers.
std::pair<double, int64_t> peak(const Observed& run, const View& view) {
  std::pair<double, int64_t> most = {kRounding, 0};
  const Table* const table = run.table(view.name);
  if (table == nullptr || view.columns.empty() || table->rows.back().layer < 2) return most;
  for (const Row& row : table->rows) {
    const double value = number_of(run, view, row).value;
    if (row.layer > 0 && value > most.first) most = {value, row.layer};
  }
  return most;
}

/// What both runs have most of in the same layer.
std::optional<Conclusion> say_alike(std::span<const Observed> runs,
                                    std::span<const View* const> views) {
  Conclusion said{.sentence = "Alike above the embedding: in both, "};
  for (const View* view : views) {
    const auto a = peak(runs[0], *view), b = peak(runs[1], *view);
    if (view->rows != lens::Rows::kLayers || a.second == 0 || a.second != b.second) continue;
    if (said.views.size() == kMostAlike) break;
    const auto number = [&](const Observed& run, double value) {
      const std::string angle = angle_text(run, *view, {.layer = a.second, .cells = {}});
      return angle.empty() ? number_text(value, view->columns[view->lead]) : angle;
    };
    const bool first = said.views.empty();
    said.sentence += fmt::format("{}{}{} in layer {} ({} and {})", first ? "" : "; ",
                                 lead_name(*view), first ? " is largest" : "", a.second,
                                 number(runs[0], a.first), number(runs[1], b.first));
    said.views.push_back(view);
  }
  said.sentence += '.';
  return said.views.empty() ? std::nullopt : std::optional(said);
}

Conclusion say_difference(const Difference& it, std::span<const Observed> runs, bool most) {
  const View& view = *it.view;
  const auto number = [&](size_t run) {
    const std::string angle = angle_text(runs[run], view, it.place);
    return number_text(number_of(runs[run], view, it.place).value, view.columns[view.lead]) +
           (angle.empty() ? "" : " (" + angle + ")");
  };
  const bool has_untrained = !std::isnan(it.untrained[0]) && !std::isnan(it.untrained[1]);
  return {fmt::format("{}{}{}{}{}: {} {}, {} {}{}.",
                      most && it.place.layer > 0 ? "Above the embedding they differ most in " : "",
                      lead_name(view), *view.unit == '\0' ? "" : ", ", view.unit,
                      where(it.place, view), runs[0].label, number(0), runs[1].label, number(1),
                      has_untrained
                          ? fmt::format("; with random weights {} and {}", number(2), number(3))
                          : ""),
          {&view}};
}

/// The views of one certainty, where there are any.
std::optional<Conclusion> say_views(const char* what, Certainty certainty,
                                    std::span<const Difference> all) {
  Conclusion said{.sentence = what};
  for (const Difference& each : all) {
    if (each.certainty == certainty) said.views.push_back(each.view);
  }
  return said.views.empty() ? std::nullopt : std::optional(said);
}

/// What else to run.
std::optional<Conclusion> say_more(std::span<const Observed> runs, bool differ) {
  Conclusion said;
  if (runs[0].num_texts == 1) {
    said.sentence = "This is one text: others may show other numbers.";
    said.advice = "-i FILE gives means over the lines of a file, with intervals.";
  }
  if (differ && runs.size() == 2 && runs[1].untrained == 0) {
    said.advice += said.advice.empty() ? "" : " ";
    said.advice += "--baseline random shows how far random weights differ.";
  }
  return said.advice.empty() ? std::nullopt : std::optional(said);
}

/// What the views of one run say of themselves.
std::vector<Conclusion> of_one(const Observed& run, std::span<const View* const> views) {
  std::vector<Conclusion> said;
  for (const View* view : views) {
    const Table* const table = run.table(view->name);
    if (view->sentence == nullptr || table == nullptr || table->rows.empty()) continue;
    const std::string sentence = view->sentence(*table);
    if (!sentence.empty() && said.size() < kMostOfOne) said.push_back({sentence, {view}});
  }
  if (!said.empty() && run.num_texts == 1) said.push_back(*say_more({&run, 1}, false));
  return said;
}

}  // namespace

std::string say_pair(const Observed& second) {
  constexpr float kSame = 0.1F;  // degrees; what float32 leaves of 0 after some layers
  const size_t layers = second.apart.size() / 2;
  if (layers == 0) return "";
  const auto there = std::span(second.apart).first(layers);
  const auto without = std::span(second.apart).subspan(layers);
  const std::string last = degrees_text(there.back());
  if (std::ranges::max(without) >= kSame)
    return fmt::format(
        "Even without positions this model tells the two orders of these words apart, by {} in the "
        "last layer, as one does whose tokens read only those before them; with positions by {}.",
        degrees_text(without.back()), last);
  if (std::ranges::max(there) < kSame)
    return "Both texts are the same to this model: nothing tells it the order of the words.";
  size_t most = 0;  // the layer that turns them most; 0: none does
  float step = kSame;
  for (size_t l = 1; l < layers; ++l) {
    if (there[l] - there[l - 1] > step) step = there[most = l] - there[l - 1];
  }
  const std::string begin = "Without positions both texts are the same to this model. With them, ";
  if (most == 0)
    return fmt::format(
        "{}the same words are {} apart in the embedding, and {} after the last layer.", begin,
        degrees_text(there[0]), last);
  const std::string who = fmt::format(
      "{}layer {} does most to tell who stands before whom: it takes the same words from {} to {} "
      "apart",
      begin, most, degrees_text(there[most - 1]), degrees_text(there[most]));
  return most == layers - 1 ? who + "."
                            : fmt::format("{}; after the last layer it is {}.", who, last);
}

std::string lead_name(const View& view) {
  const bool one_of_several = view.series > 1 || view.lead > 0;
  return one_of_several ? fmt::format("{} ({})", view.title, label_of(view.columns[view.lead]))
                        : view.title;
}

std::vector<Difference> differences(std::span<const Observed> runs,
                                    std::span<const View* const> views) {
  std::vector<Difference> all;
  for (const View* view : views) {
    const Table* const table = runs[0].table(view->name);
    if (table == nullptr || view->rows == lens::Rows::kHeads || view->columns.empty()) continue;
    Difference most;
    std::array<double, 2> sums = {};
    int64_t rows = 0;
    for (const Row& row : table->rows) {
      const Difference here = compared(runs, *view, row);
      if (std::isnan(here.there[0] + here.there[1])) continue;
      for (size_t side = 0; side < 2; ++side) sums[side] += here.there[side];
      if (rows++ == 0 || std::tuple(here.certainty, row.layer != 0, here.excess) >
                             std::tuple(most.certainty, most.place.layer != 0, most.excess))
        most = here;
      if (view->rows == lens::Rows::kNamed) break;  // the first row stands for all
    }
    if (rows == 0) continue;
    for (size_t side = 0; side < 2; ++side)
      most.mean[side] = sums[side] / static_cast<double>(rows);
    all.push_back(most);
  }
  return all;
}

std::vector<Conclusion> conclusions(std::span<const Observed> runs,
                                    std::span<const View* const> views) {
  if (runs.size() == 1) return of_one(runs[0], views);
  const std::vector<Difference> all = differences(runs, views);
  std::vector<Difference> sure;
  std::ranges::copy_if(all, std::back_inserter(sure),
                       [](auto& d) { return d.certainty == Certainty::kDiffers; });
  std::ranges::stable_sort(
      sure, {}, [](const Difference& d) { return std::pair(d.place.layer == 0, -share_of(d)); });
  std::vector<Conclusion> said;
  const auto say = [&](const std::optional<Conclusion>& what) {
    if (what) said.push_back(*what);
  };
  if (std::ranges::find(views, &view("moved")) != views.end()) say(say_states(runs));
  say(say_alike(runs, views));
  const auto largest = std::ssize(said);
  say(say_views("The same but for rounding.", Certainty::kSame, all));
  say(say_views("Not told apart: the 95 % intervals of both overlap, or there are none.",
                Certainty::kNotTold, all));
  say(say_views("No further apart than random weights are.", Certainty::kUntrained, all));
  if (!all.empty()) say(say_more(runs, !sure.empty()));
  sure.resize(std::min(sure.size(), kMostOfTwo - said.size()));
  for (size_t i = 0; i < sure.size(); ++i)
    said.insert(said.begin() + largest + static_cast<std::ptrdiff_t>(i),
                say_difference(sure[i], runs, i == 0));
  return said;
}

}  // namespace phasor::internal
