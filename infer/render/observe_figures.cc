// What infer observe measures, as figures for a paper.
#include "infer/render/observe_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "infer/render/figure.h"

namespace infer {
namespace {

constexpr int64_t kFarthestOffset = 16;

/// "before" and "after", or nothing where there is one run.
std::string run_name(const ObservedPair& pair, std::string_view run) {
  return pair.after ? std::string(run) : "";
}

std::string with_run(const std::string& title, const std::string& run) {
  return run.empty() ? title : title + ", " + run;
}

/// Numbers of the layers from `first` on; those that there are not leave a gap.
Series over_layers(std::string name, const Observed& text, size_t first,
                   const std::function<std::optional<double>(const ObservedLayer&)>& number) {
  Series series{.name = std::move(name), .x = {}, .y = {}};
  for (size_t l = first; l < text.layers.size(); ++l) {
    series.x.push_back(static_cast<double>(l));
    series.y.push_back(number(text.layers[l]).value_or(NAN));
  }
  return series;
}

bool has_numbers(const std::vector<Series>& series) {
  return std::any_of(series.begin(), series.end(), [](const Series& line) {
    return std::any_of(line.y.begin(), line.y.end(), [](double y) { return std::isfinite(y); });
  });
}

std::vector<std::string> layer_names(const Observed& text) {
  std::vector<std::string> names = {"embed"};
  for (int64_t l = 1; l <= text.num_layers(); ++l) names.push_back(fmt::format("{}", l));
  return names;
}

/// One text's figures, each under its name.
class Figures {
 public:
  Figures(const ObservedPair& pair, const std::string& name, const FigureFolder& folder)
      : pair_(pair), name_(name), folder_(folder) {}

  void split(const std::string& what, const std::string& title, const char* group,
             std::optional<ObservedSplit> ObservedLayer::*member) const {
    for_each_run(pair_, [&](const char* run, const Observed& text) {
      std::vector<Part> parts = {{"position", {}}, {group, {}}, {"rest", {}}};
      for (const ObservedLayer& layer : text.layers) {
        if (!(layer.*member)) return;
        const ObservedSplit& split = *(layer.*member);
        parts[0].values.push_back(split.position);
        parts[1].values.push_back(split.group);
        parts[2].values.push_back(split.rest);
      }
      const std::string suffix = run_name(pair_, run);
      write(what, suffix,
            stacked_bars({with_run(title, suffix), "layer", "share of variance"}, layer_names(text),
                         parts));
    });
  }

  void lines(const std::string& what, const FigureText& text, size_t first,
             const std::function<std::optional<double>(const ObservedLayer&)>& number) const {
    std::vector<Series> series;
    for_each_run(pair_, [&](const char* run, const Observed& observed) {
      series.push_back(over_layers(run_name(pair_, run), observed, first, number));
    });
    if (!has_numbers(series)) return;
    write(what, "", line_chart(text, series));
  }

  void order() const {
    for_each_run(pair_, [&](const char* run, const Observed& text) {
      std::vector<Series> series;
      for (size_t kind = 0; kind < kReorderingNames.size(); ++kind) {
        series.push_back(over_layers(std::string(kReorderingNames[kind]), text, 0,
                                     [&](const ObservedLayer& layer) -> std::optional<double> {
                                       return layer.order ? std::optional((*layer.order)[kind])
                                                          : std::nullopt;
                                     }));
      }
      if (!has_numbers(series)) return;
      const std::string suffix = run_name(pair_, run);
      write("order", suffix,
            line_chart({with_run("Moved by a new order", suffix), "layer", "‖Δh‖ / ‖h‖"}, series));
    });
  }

  /// The share of attention by offset, a line for each layer.
  void offsets() const {
    for_each_run(pair_, [&](const char* run, const Observed& text) {
      std::vector<Series> series;
      for (size_t l = 1; l < text.layers.size(); ++l) {
        if (!text.layers[l].attention) return;
        Series& line = series.emplace_back(Series{fmt::format("layer {}", l), {}, {}});
        for (const auto& [offset, share] : text.layers[l].attention->by_offset) {
          if (std::abs(offset) > kFarthestOffset) continue;
          line.x.push_back(static_cast<double>(offset));
          line.y.push_back(share);
        }
      }
      const std::string suffix = run_name(pair_, run);
      write("offsets", suffix,
            line_chart({with_run("Attention by offset", suffix), "offset j − i", "share"}, series));
    });
  }

  void pattern(std::optional<HeadNumber> asked) const {
    const HeadNumber head = chosen_head(pair_, asked);
    for_each_run(pair_, [&](const char* run, const Observed& text) {
      const Matrix matrix = pattern_of(text, head);
      const std::string suffix = run_name(pair_, run);
      const std::string title = fmt::format("Attention of head {}.{}", head.layer, head.head);
      write("pattern", suffix,
            heat_map_figure(matrix, {.text = {with_run(title, suffix), "read", "reading"},
                                     .value_label = "share",
                                     .range = Range{0, 1},
                                     .row_labels = text.input.pieces,
                                     .column_labels = text.input.pieces}));
    });
  }

  /// 1 − cos between the vectors that were added.
  void distances() const {
    for_each_run(pair_, [&](const char* run, const Observed& text) {
      if (text.position_vectors.empty()) return;
      const int64_t tokens = text.num_tokens();
      const auto width = std::ssize(text.position_vectors) / tokens;
      Matrix matrix{.values = {}, .rows = tokens, .columns = tokens};
      const auto row = [&](int64_t t) {
        return std::span(text.position_vectors).subspan(t * width, width);
      };
      for (int64_t i = 0; i < tokens; ++i) {
        for (int64_t j = 0; j < tokens; ++j) {
          matrix.values.push_back(phasor::mean_cosine_distance(row(i), row(j), width));
        }
      }
      const std::string suffix = run_name(pair_, run);
      write("distances", suffix,
            heat_map_figure(matrix, {.text = {with_run("Distances of position vectors", suffix)},
                                     .value_label = "1 − cos",
                                     .row_labels = text.input.pieces,
                                     .column_labels = text.input.pieces}));
    });
  }

  void moved() const {
    Series series{.name = "", .x = {}, .y = {}};
    for (size_t l = 0; l < pair_.moved.size(); ++l) {
      series.x.push_back(static_cast<double>(l));
      series.y.push_back(1 - pair_.moved[l].mean_cosine());
    }
    write("moved", "", line_chart({"Moved by the interventions", "layer", "1 − cos"}, {series}));
  }

 private:
  void write(const std::string& what, const std::string& run, const std::string& svg) const {
    folder_.write(fmt::format("{}-{}{}{}", name_, what, run.empty() ? "" : "-", run), svg);
  }

  const ObservedPair& pair_;
  const std::string& name_;
  const FigureFolder& folder_;
};

void draw(View view, const Shown& shown, const Figures& figures) {
  switch (view) {
    case View::kMoved:
      return figures.moved();
    case View::kSplit:
      return figures.split("split", "What states are made of", "token", &ObservedLayer::split);
    case View::kCorpus:
      return figures.split("corpus", "What states are made of, over texts", "text",
                           &ObservedLayer::corpus_split);
    case View::kDirect:
      return figures.lines("direct", {"The position vector's own part", "layer", "‖D‖ / ‖h‖"}, 0,
                           [](const ObservedLayer& layer) -> std::optional<double> {
                             const auto& direct = layer.direct_position;
                             return direct ? std::optional(direct->norm) : std::nullopt;
                           });
    case View::kEffect:
      return figures.lines("effect", {"Moved by positions", "layer", "1 − cos"}, 0,
                           [](const ObservedLayer& layer) { return layer.position_effect; });
    case View::kOrder:
      return figures.order();
    case View::kAttention:
      return figures.offsets();
    case View::kPattern:
      return figures.pattern(shown.head);
    case View::kProbe:
      return figures.lines("probe", {"Position, read by a linear probe", "layer", "held-out R²"}, 0,
                           [](const ObservedLayer& layer) -> std::optional<double> {
                             const auto& probe = layer.probe;
                             return probe ? std::optional(probe->held_out.r2) : std::nullopt;
                           });
    case View::kScores:
      return;  // six numbers
  }
}

}  // namespace

void write_figures(const ObservedPair& pair, const Shown& shown, const std::string& name,
                   const FigureFolder& folder) {
  const Figures figures(pair, name, folder);
  for (const View view : shown.views) {
    if (applies(view, pair)) draw(view, shown, figures);
  }
  figures.distances();
}

}  // namespace infer
