// Where the results of infer observe go: standard output, a page, activations.
#include "infer/commands/observe_results.h"

#include <nlohmann/json.hpp>

#include "infer/commands/observe_save.h"

namespace infer {

ObserveResults::ObserveResults(const ObserveOptions& options, const Runs& runs,
                               std::span<const Input> inputs)
    : options_(options), runs_(runs), inputs_(inputs) {
  if (!options.html.empty()) page_.emplace(options.html);
}

void ObserveResults::add(ObservedPair pair) {
  if (page_) {
    for_each_run(pair, [&](const char* run, const Observed& text) {
      page_->add_run(added_, pair.after ? run : text.model, text);
    });
    if (pair.after) page_->add_moved(added_, pair.moved);
  }
  ++added_;
  const bool to_save = !options_.texts.save.empty() && !pair.before.corpus;
  if (to_save) {
    unsaved_.push_back(std::move(pair));
  } else {
    show(pair);
  }
}

void ObserveResults::end_texts() {
  if (options_.texts.save.empty()) return;
  // First the file: where it cannot be written, the error stands alone.
  save_observed(options_.texts, runs_, inputs_, unsaved_);
  for (const ObservedPair& pair : unsaved_) show(pair);
  unsaved_.clear();
}

void ObserveResults::finish() {
  if (page_) page_->write(options_.texts.common.quiet);
}

void ObserveResults::show(const ObservedPair& pair) {
  if (!pair.before.corpus) {
    print_notes(options_.texts, runs_.before.encoder, runs_.before.options, pair.before, shown_,
                inputs_.size());
  }
  if (options_.texts.common.json) {
    output_.write(line(to_json(pair)) + "\n");
  } else if (options_.csv) {
    output_.write((shown_ == 0 ? csv_head() : "") + to_csv(pair, shown_ + 1));
  } else {
    output_.write((shown_ == 0 ? "" : "\n") + to_text(pair, options_.shown, output_));
  }
  ++shown_;
}

}  // namespace infer
