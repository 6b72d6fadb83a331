// What position components are for: each is subtracted, and the loss on masked tokens measured.
#include <fmt/format.h>

#include "lens/latin_squares.h"
#include "lens/order.h"
#include "lens/study/masked_run.h"
#include "lens/study/measures.h"

namespace phasor::internal {
namespace {

/// Less the mean row.
void center(std::vector<float>& rows, int64_t d_model) {
  for (int64_t c = 0; c < d_model; ++c) {
    double sum = 0;
    for (size_t i = c; i < rows.size(); i += d_model) sum += rows[i];
    const double mean = sum * static_cast<double>(d_model) / static_cast<double>(rows.size());
    for (size_t i = c; i < rows.size(); i += d_model) rows[i] -= static_cast<float>(mean);
  }
}

/// The added vectors as they leave the embedding, less their mean, which says nothing about a
/// place.
TextRows added_vectors(MaskedRun& run) {
  const Model& model = run.subject().model();
  TextRows rows(run.texts().size());
  for (int64_t i = 0; i < std::ssize(rows); ++i) {
    const auto take = [&](int64_t l, std::span<const ResidualPart> parts) {
      if (l != 0) return;
      for (const ResidualPart& part : parts) {
        if (part.source == ResidualSource::kPosition)
          rows[i].assign(part.values.begin(), part.values.end());
      }
    };
    for_each_residual_state(model, run.trace(), i, take);
    center(rows[i], model.config().d_model);
  }
  return rows;
}

/// The rows of a part at words at the edges alone, or in the interior; 0 elsewhere.
TextRows rows_at(bool edges, const RunPart& part, MaskedRun& run) {
  const Model& model = run.subject().model();
  const int64_t d_model = model.config().d_model;
  const TextRows all = part.of(run);
  TextRows rows;
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<float>& text = rows.emplace_back(all[i].size());
    const std::vector<int32_t>& ids = run.texts()[i].token_ids;
    const std::vector<int64_t> words = text_places(model, ids);
    const std::vector<bool> is_edge = at_edges(words, std::ssize(ids));
    for (size_t k = 0; k < words.size(); ++k) {
      const int64_t row = words[k] * d_model;
      if (is_edge[k] == edges) std::copy_n(all[i].begin() + row, d_model, text.begin() + row);
    }
  }
  return rows;
}

/// Each as a whole, at the edges, and in the interior.
std::vector<RunPart> parts_of(const lens::Run& subject) {
  std::vector<RunPart> parts;
  const auto add = [&](const RunPart& part) {
    parts.push_back(part);
    for (const bool edges : {true, false}) {
      parts.push_back({part.label + (edges ? " edges" : " interior"), part.hook, part.layer,
                       [edges, part](MaskedRun& run) { return rows_at(edges, part, run); }});
    }
  };
  // Subtracted when the first block's attention has read them.
  if (adds_vectors(subject) && subject.options.cut_residuals.empty())
    add({"direct path", Hook::kResidMid, 0, added_vectors});
  for (int64_t l = 0; l < subject.model().config().num_layers; ++l) {
    add({fmt::format("position {}", l), Hook::kResidPre, l,
         [l](MaskedRun& run) { return run.position(Hook::kResidPre, l); }});
  }
  return parts;
}

MaskedScore mean_of(const Draws& draws) {
  MaskedScore mean = draws[0];
  for (size_t i = 0; i < mean.losses.size(); ++i) {
    for (size_t draw = 1; draw < draws.size(); ++draw) mean.losses[i] += draws[draw].losses[i];
    mean.losses[i] /= static_cast<double>(draws.size());
  }
  return mean;
}

/// The losses without a part, and without what its controls take in its place.
struct Removed {
  bool is_there = false;  // some row is not 0
  MaskedScore part;
  Draws random = Draws(kDraws), shuffled = random;
};

}  // namespace

void score_causes(Many& many) {
  const lens::Run& subject = many.subject;
  const std::vector<MaskedText> texts = recordable_texts(many, "causes", {&subject});
  if (texts.empty()) return;
  const std::vector<RunPart> parts = parts_of(subject);
  MaskedScore unchanged, without_positions;
  std::vector<Removed> removed(parts.size());
  RunOptions averaged = subject.options;
  averaged.positions = subject.options.positions.edited(many.request.without);
  int64_t number = 0;  // of the batch's first text
  for (const std::span<const MaskedText> batch : recordable_batches(texts)) {
    MaskedRun run(subject, batch, many.request.seed, unchanged);
    run.score_again(averaged, without_positions);
    for (size_t k = 0; k < parts.size(); ++k) {
      many.stages.show("parts of masked texts",
                       number * std::ssize(parts) + static_cast<int64_t>(k * batch.size()),
                       std::ssize(texts) * std::ssize(parts));
      const auto& [label, hook, layer, of] = parts[k];
      TextRows rows = of(run);
      for (const std::vector<float>& text : rows)
        removed[k].is_there |= std::ranges::any_of(text, [](float x) { return x != 0; });
      for (size_t draw = 0; draw < kDraws; ++draw) {
        const uint64_t seed =
            many.request.seed + (k * kDraws + draw) * texts.size() + static_cast<size_t>(number);
        run.score_without(hook, layer, random_like(rows, subject.model().config().d_model, seed),
                          removed[k].random[draw]);
        run.score_without(hook, layer, at_other_places(rows, run, seed), removed[k].shuffled[draw]);
      }
      run.score_without(hook, layer, std::move(rows), removed[k].part);
    }
    number += std::ssize(batch);
  }
  Row row{.label = "positions", .cells = {}};
  add_difference(without_positions, unchanged, row);
  for (int control = 0; control < 3; ++control) add_cell(row, std::nan(""));
  add_row(many.means, "causes", std::move(row));
  for (size_t k = 0; k < parts.size(); ++k) {
    Row of_part{.label = parts[k].label, .cells = {}};
    if (!removed[k].is_there) {
      of_part.cells.assign(4, std::nan(""));
      add_row(many.means, "causes", std::move(of_part));
      continue;
    }
    const MaskedScore shuffled = mean_of(removed[k].shuffled);
    add_difference(removed[k].part, unchanged, of_part);
    add_difference(mean_of(removed[k].random), unchanged, of_part);
    add_difference(shuffled, unchanged, of_part);
    add_difference(removed[k].part, shuffled, of_part);
    add_row(many.means, "causes", std::move(of_part));
  }
}

}  // namespace phasor::internal
