#include "infer/commands/embed/embedder.h"

#include <fmt/format.h>

#include <filesystem>

#include "files/utf8.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "lens/study/run.h"

namespace infer {

phasor::EmbedOptions embed_options(const VectorOptions& given, const phasor::Model& model) {
  if (given.normalize && given.no_normalize) {
    throw UsageError("--normalize and --no-normalize exclude each other; give one of them");
  }
  phasor::EmbedOptions options;
  options.overflow = parse_name<phasor::Overflow>("--overflow", given.overflow);
  phasor::Pooling& pooling = options.pooling.emplace();
  if (given.pooling.empty() || model.has_sentence()) pooling = model.sentence().pooling;
  if (!given.pooling.empty()) {
    pooling = of_option("--pooling", [&] {
      return pooling.with_modes(phasor::parse_pooling_modes(given.pooling));
    });
  }
  if (given.normalize || given.no_normalize) pooling.normalize = given.normalize;
  options.prompt = given.prefix;
  if (given.prefix && phasor::internal::to_valid_utf8(*given.prefix).invalid_bytes > 0) {
    throw UsageError("--prefix: it is not valid UTF-8");
  }
  if (!options.prompt) options.prompt = model.text().prompt;
  options.parse_special = given.common.special;
  return options;
}

void add_vector_options(CommandLine& line, VectorOptions& options) {
  line.option(
      "--pooling", "MODES",
      "cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken, or several with commas, "
      "instead of the model's own",
      options.pooling);
  line.flag("--normalize", "vectors of length 1, whatever the model's files say",
            options.normalize);
  line.flag("--no-normalize", "do not normalise, whatever the model's files say",
            options.no_normalize);
  add_language(line, options.common);
  add_special(line, options.common);
  line.option("--prefix", "TEXT",
              "put before every text, like \"query: \", instead of the model's own prompt",
              options.prefix);
  line.option("--overflow", "POLICY",
              "a text that is too long: truncate (default), error, window, clamp or interpolate",
              options.overflow);
  line.flag("--strict", "stop at a line that is cut or not plain UTF-8", options.strict);
}

Embedder::Embedder(const VectorOptions& given, bool finds)
    : model(phasor::Model::load(given.common.model, load_options(given.common))),
      options(embed_options(given, *model)),
      encoder(model, encoder_options(given.common)),
      stream{.quiet = given.common.quiet,
             .strict = given.strict,
             .refuses_long = options.overflow == phasor::Overflow::kError},
      given(given) {
  model->tokenizer();  // or the sentence why there is none
  stream.line_bytes = width() * int64_t{sizeof(float)};
  if (finds && !given.prefix) {
    options.prompt = model->text().document_prompt().value_or(*options.prompt);
  }
  if (given.common.quiet) return;
  const std::string source = given.pooling.empty() ? model->sentence().source : "--pooling";
  report_note(fmt::format("sentence vectors: {} ({}), {}", to_string(*options.pooling),
                          source.empty() ? "the default: no sentence-transformers files" : source,
                          to_string(encoder.precision())));
  note_slow(precision_of(given.common));
  if (!options.prompt->empty() && !given.prefix) {
    report_note(fmt::format("before every text: \"{}\" (config_sentence_transformers.json)",
                            *options.prompt));
  }
  const int64_t longest = model->text().max_tokens;
  const bool runs_all = options.overflow == phasor::Overflow::kClamp ||
                        options.overflow == phasor::Overflow::kInterpolate;
  if (longest > 0 && runs_all && model->max_tokens().value_or(longest + 1) > longest) {
    report_note(
        fmt::format("--overflow {} runs whole texts, although the model's files cut them to {} "
                    "tokens; window keeps to that length",
                    given.overflow, longest));
  }
  for (const std::string& note : model->notes()) report_note(note);
}

phasor::Embeddings Embedder::run(std::span<const std::string_view> texts,
                                 const phasor::Progress& progress, const std::stop_token& stop) {
  phasor::EmbedOptions how = options;
  // The library does not know the line's number: the text is cut, and the stream refuses it.
  if (how.overflow == phasor::Overflow::kError) how.overflow = phasor::Overflow::kTruncate;
  how.progress = progress;
  how.stop = stop;
  return encoder.embed(texts, how);
}

std::map<std::string, std::string> model_metadata(const phasor::Encoder& encoder) {
  const auto valid = [](const std::filesystem::path& name) {
    return phasor::internal::to_valid_utf8(name.string()).text;
  };
  const auto folder = weakly_canonical(encoder.model().folder());
  std::map<std::string, std::string> metadata = {
      {"model", valid(phasor::internal::short_name(folder.string()))},
      {"precision", std::string(to_string(encoder.precision()))}};
  const auto snapshots = folder.parent_path(), cached = snapshots.parent_path().filename();
  if (snapshots.filename() == "snapshots" && cached.string().starts_with("models--"))
    metadata["revision"] = valid(folder.filename());
  return metadata;
}

std::map<std::string, std::string> Embedder::metadata() const {
  auto metadata = model_metadata(encoder);
  metadata["pooling"] = to_string(*options.pooling);
  return metadata;
}

phasor::Similarity Embedder::similarity() const {
  return model->has_sentence() ? model->sentence().similarity : phasor::Similarity::kCosine;
}

}  // namespace infer
