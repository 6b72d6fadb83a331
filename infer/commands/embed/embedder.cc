#include "infer/commands/embed/embedder.h"

#include <fmt/format.h>

#include <filesystem>

#include "files/utf8.h"
#include "infer/cli/terminal.h"
#include "infer/commands/embed/kinds.h"
#include "lens/study/run.h"
#include "phasor/fields.h"

namespace infer {
namespace {

using phasor::Overflow;

/// What the model's files are asked for must be what they say.
phasor::TextOptions checked(phasor::TextOptions options, const phasor::Model& model) {
  model.tokenizer();  // or the sentence why there is none
  const bool looks_up = (phasor::uses_of(options) & phasor::kUseSparse) != 0 &&
                        options.role == phasor::TextRole::kQuery &&
                        !model.sparse().query_weights.empty();
  const Overflow overflow = options.overflow.value_or(Overflow::kTruncate);
  if (looks_up && overflow != Overflow::kTruncate && overflow != Overflow::kError)
    throw UsageError(
        "--overflow: queries that are looked up are cut (truncate), or an error (error)");
  return options;
}

}  // namespace

Embedder::Embedder(const VectorArguments& given)
    : model(phasor::Model::load(given.common.model, load_options(given.common))),
      options(checked(given.how, *model)),
      encoder(model, encoder_options(given.common)),
      stream{.quiet = given.common.quiet,
             .strict = given.strict,
             .refuses_long = options.overflow == Overflow::kError},
      quiet(given.common.quiet) {
  stream.line_bytes = bytes_of_line(*this);
  const std::string how = description(*this);
  if (quiet) return;
  report_note(fmt::format("{}, {}", how, to_string(encoder.precision())));
  tell(given);
}

void Embedder::tell(const VectorArguments& given) const {
  note_slow(precision_of(given.common));
  if (!options.prompt && !prompt().empty())
    report_note(
        fmt::format("before every text: \"{}\" (config_sentence_transformers.json)", prompt()));
  const int64_t longest = model->text().max_tokens;
  const bool runs_all =
      options.overflow == Overflow::kClamp || options.overflow == Overflow::kInterpolate;
  if (longest > 0 && runs_all && model->max_tokens().value_or(longest + 1) > longest) {
    report_note(
        fmt::format("--overflow {} runs whole texts, although the model's files cut them to {} "
                    "tokens; window keeps to that length",
                    to_string(*options.overflow), longest));
  }
  for (const std::string& note : model->notes()) report_note(note);
}

phasor::Vectors Embedder::run(std::span<const std::string_view> texts,
                              const phasor::Progress& progress, const std::stop_token& stop) {
  phasor::TextOptions how = options;
  // The library does not know the line's number: the text is cut, and the stream refuses it.
  if (how.overflow == Overflow::kError) how.overflow = Overflow::kTruncate;
  how.progress = progress;
  how.stop = stop;
  return encoder.embed(texts, how);
}

std::string Embedder::prompt() const {
  const phasor::TextConfig& text = model->text();
  if (options.prompt) return *options.prompt;
  if (!options.prompt_name.empty()) {
    const auto found = text.prompts.find(options.prompt_name);
    return found == text.prompts.end() ? "" : found->second;
  }
  const bool is_any = options.role == phasor::TextRole::kAny;
  if (is_any && !makes(phasor::kUseSparse) && !makes(phasor::kUseTokens)) return text.prompt;
  return text.prompt_for(options.role == phasor::TextRole::kQuery);
}

std::map<std::string, std::string> Embedder::metadata() const {
  const auto valid = [](const std::filesystem::path& name) {
    return phasor::internal::to_valid_utf8(name.string()).text;
  };
  const auto folder = weakly_canonical(model->folder());
  std::map<std::string, std::string> metadata;
  for (const phasor::Field& field : phasor::fields()) {
    if (field.text != nullptr && field.is_set(options))
      metadata.emplace(field.name, valid(field.text(options)));
  }
  metadata["model"] = valid(phasor::internal::short_name(folder.string()));
  metadata["precision"] = to_string(encoder.precision());
  const auto snapshots = folder.parent_path(), cached = snapshots.parent_path().filename();
  if (snapshots.filename() == "snapshots" && cached.string().starts_with("models--"))
    metadata["revision"] = valid(folder.filename());
  if (makes(phasor::kUseDense)) metadata["pooling"] = to_string(encoder.pooling(options));
  if (makes(phasor::kUseTokens))
    metadata["similarity"] = model->token_vectors().mean ? "meanmaxsim" : "maxsim";
  return metadata;
}

phasor::Similarity Embedder::similarity() const {
  return model->has_sentence() ? model->sentence().similarity : phasor::Similarity::kCosine;
}

}  // namespace infer
