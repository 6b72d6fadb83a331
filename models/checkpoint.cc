#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "files/files.h"
#include "files/refuse.h"
#include "models/parameters.h"
#include "phasor/positions.h"

namespace phasor::internal {
namespace {

constexpr double kFormulaTolerance = 1e-4;

class Binder {
 public:
  Binder(const TensorFiles& files, const Family& family, bool labels_tokens)
      : files_(files),
        family_(family),
        classifier_(labels_tokens ? family.token_classifier : family.classifier) {
    prefix_ = find_prefix();
  }

  /// Whether the files have this tensor; if so, marks its name as used.
  bool bind(const Parameter& parameter) {
    const std::optional<Stored> found = find(parameter);
    if (!found) {
      if (parameter.required) missing(parameter);
      return false;
    }
    if (!shape_fits(whole(parameter, *found), files_.shape(found->name))) {
      refuse<ModelError>("{}: the tensor '{}' has shape {}; config.json asks for {}",
                         files_.where(), found->name, shape_text(files_.shape(found->name)),
                         shape_text(whole(parameter, *found).shape));
    }
    *parameter.tensor = part_of(files_.tensor(found->name), *found);
    used_.insert(found->name);
    return true;
  }

  bool has(const Parameter& parameter) const { return find(parameter).has_value(); }

  bool has_in_shape(const Parameter& parameter) const {
    const std::optional<Stored> found = find(parameter);
    return found && shape_fits(whole(parameter, *found), files_.shape(found->name));
  }

  /// Throws if a block has tensors that its family does not: it computes something else. Blocks
  /// beyond config.json's number are not used.
  void check_blocks(int64_t num_blocks) const {
    const std::string_view module = find_module("blocks.{l}.attn.q").theirs;
    const std::string blocks = prefix_ + std::string(module.substr(0, module.find("{l}")));
    for (const std::string& name : unused()) {
      if (!name.starts_with(blocks) || name.ends_with("inv_freq")) continue;
      int64_t block = 0;
      std::from_chars(name.data() + blocks.size(), name.data() + name.size(), block);
      if (block >= num_blocks) continue;
      refuse<ModelError>(ErrorCode::kUnsupported,
                         "{}: the tensor '{}' belongs to no {} model that phasor knows; its layers "
                         "compute something else",
                         files_.where(), name, family_.model_type);
    }
  }

  /// Whether the files have a classification head whose first map the other head would take for its
  /// own: ModernBERT's have the same names.
  bool classifies() const {
    const auto stored = [&](std::string_view module) {
      return find({.module = module, .leaf = "weight", .shape = {}});
    };
    const auto dense = stored("classifier.dense"), mlm = stored("mlm.dense");
    return stored("classifier.out") && dense && mlm && dense->name == mlm->name;
  }

  /// The shape of the parameter in the files; empty if they do not have it.
  std::vector<int64_t> shape(const Parameter& parameter) const {
    const std::optional<Stored> found = find(parameter);
    return found ? files_.shape(found->name) : std::vector<int64_t>();
  }

  /// Whether the family has a name for it.
  bool knows(const Parameter& parameter) const { return !names_of(parameter).empty(); }

  /// Whether the files may lack it: a bias of some families, or a module that the family lacks.
  bool optional(const Parameter& parameter) const {
    if (parameter.leaf == "bias" && family_.optional_biases) return true;
    return !parameter.required && !knows(parameter);
  }

  std::vector<std::string> unused() const {
    std::vector<std::string> names;
    for (const auto& [name, file] : files_.tensors()) {
      if (used_.count(name) == 0) names.push_back(name);
    }
    return names;
  }

 private:
  /// A tensor in the files, or one of several equal parts of its rows.
  struct Stored {
    std::string name;
    int part = 0;
    int parts = 1;
  };

  const ModuleName& find_module(std::string_view ours) const {
    return *std::ranges::find(family_.modules, ours, &ModuleName::ours);
  }

  /// The names the parameter may have in the file, best first.
  std::vector<Stored> names_of(const Parameter& parameter) const {
    std::vector<Stored> names;
    const auto add = [&](const ModuleName& module, std::string_view prefix) {
      std::string_view rest = module.theirs;
      while (!rest.empty()) {
        const std::string_view one = rest.substr(0, rest.find('|'));
        rest.remove_prefix(std::min(one.size() + 1, rest.size()));
        const std::string base = fmt::format("{}{}.", prefix, with_layer(one, parameter.layer));
        names.push_back({base + std::string(parameter.leaf), module.part, module.parts});
        // BERT's norms had these names in TensorFlow; old conversions kept them.
        if (parameter.module.ends_with("norm")) {
          names.push_back({base + (parameter.leaf == "weight" ? "gamma" : "beta")});
        }
      }
    };
    if (family_.spelled_out) add({parameter.module, parameter.module}, prefix_);
    for (const auto& modules : {family_.modules, classifier_}) {
      for (const ModuleName& module : modules) {
        if (module.ours == parameter.module) add(module, module.outside ? "" : prefix_);
      }
    }
    for (const ModuleName& module : family_.head) {
      if (module.ours == parameter.module) add(module, "");
    }
    return names;
  }

  std::optional<Stored> find(const Parameter& parameter) const {
    for (Stored& stored : names_of(parameter)) {
      if (files_.contains(stored.name)) return std::move(stored);
    }
    return {};
  }

  /// The parameter as the files hold it.
  static Parameter whole(Parameter parameter, const Stored& stored) {
    parameter.shape.front() *= stored.parts;
    return parameter;
  }

  static Tensor part_of(Tensor tensor, const Stored& stored) {
    if (stored.parts == 1) return tensor;
    tensor.shape.front() /= stored.parts;
    tensor.data += stored.part * tensor.num_bytes();
    return tensor;
  }

  /// The prefix of the first block's query matrix. A decoder's blocks may have the same names.
  std::string find_prefix() const {
    const Parameter first{.module = "blocks.{l}.attn.q", .leaf = "weight", .layer = 0, .shape = {}};
    std::vector<std::string> prefixes;
    for (const Stored& wanted : names_of(first)) {
      for (const auto& [name, file] : files_.tensors()) {
        if (!name.ends_with(wanted.name)) continue;
        const std::string prefix = name.substr(0, name.size() - wanted.name.size());
        const bool whole_word = prefix.empty() || prefix.ends_with('.');
        if (!whole_word || prefix.ends_with("decoder.")) continue;
        const bool is_new = prefixes.empty() || prefixes.front() != prefix;
        if (is_new && prefixes.size() < 2) prefixes.push_back(prefix);
      }
    }
    if (prefixes.empty()) {
      refuse<ModelError>("{}: the tensor '{}' is missing; is this a {} model?", files_.where(),
                         names_of(first).front().name, family_.model_type);
    }
    if (prefixes.size() > 1) {
      refuse<ModelError>(
          "{}: there are several encoders in it, under {} and {}; save the one you want by itself",
          files_.where(), value_text(prefixes[0]), value_text(prefixes[1]));
    }
    return prefixes.front();
  }

  [[noreturn]] void missing(const Parameter& parameter) const {
    const std::vector<Stored> wanted = names_of(parameter);
    if (wanted.empty()) {
      refuse<ModelError>(ErrorCode::kUnsupported,
                         "{}: config.json asks for {}, which {} models do not have", files_.where(),
                         parameter.name(), family_.model_type);
    }
    std::vector<std::string> names;
    for (const Stored& stored : wanted) names.push_back(stored.name);
    refuse<ModelError>("{}: the tensor '{}' is missing; its shape must be {}", files_.where(),
                       fmt::join(names, "' or '"),
                       shape_text(whole(parameter, wanted.front()).shape));
  }

  const TensorFiles& files_;
  const Family& family_;
  const std::span<const ModuleName> classifier_;
  std::string prefix_;
  std::set<std::string> used_;
};

/// The fault of the head whose modules begin with `name`; empty if there is none.
std::string head_problem(const Binder& binder, const CheckpointConfig& checkpoint, Weights& weights,
                         std::string_view name) {
  for (const Parameter& parameter : parameters(checkpoint.config, weights)) {
    if (!parameter.module.starts_with(name) || binder.has_in_shape(parameter)) continue;
    const bool tied = parameter.module == "mlm.decoder" && checkpoint.ties_decoder;
    if ((tied || binder.optional(parameter)) && !binder.has(parameter)) continue;
    return fmt::format("its {} is missing, or its shape is not {}", parameter.name(),
                       shape_text(parameter.shape));
  }
  return {};
}

/// An unexpected head is no reason to refuse the encoder.
void add_mlm_head(const Binder& binder, const CheckpointConfig& checkpoint, BoundWeights& bound) {
  const Parameter dense{.module = "mlm.dense", .leaf = "weight", .shape = {}};
  const Parameter decoder{.module = "mlm.decoder", .leaf = "weight", .shape = {}};
  const bool has_head = binder.has(binder.knows(dense) ? dense : decoder);
  const bool found = !checkpoint.family->spelled_out && has_head && !binder.classifies();
  if (!found && !checkpoint.needs_mlm_head) return;
  bound.weights.mlm_head.emplace().activation = checkpoint.head_activation;
  if (checkpoint.needs_mlm_head) return;
  const std::string problem = head_problem(binder, checkpoint, bound.weights, "mlm");
  if (problem.empty()) return;
  bound.weights.mlm_head.reset();
  bound.notes.push_back("the masked-language-model head is not used: " + problem);
}

/// Likewise. Returns whether a note says that the head is not used.
bool add_classifier(const Binder& binder, const CheckpointConfig& checkpoint, BoundWeights& bound) {
  constexpr int64_t kMostLabels = 1 << 16;
  const Parameter out{
      .module = "classifier.out", .leaf = "weight", .shape = {kAnyRows, checkpoint.config.d_model}};
  if (!binder.has(out) && !checkpoint.labels_tokens) return false;
  ClassifierHead head = checkpoint.classifier;
  std::string problem = checkpoint.classifier_problem;
  if (problem.empty() && !binder.has(out)) {
    problem = fmt::format("its {} is missing", out.name());
  } else if (problem.empty() && !binder.has_in_shape(out)) {
    problem = fmt::format("its {} has shape {}; it must be {}", out.name(),
                          shape_text(binder.shape(out)), shape_text(out.shape));
  } else if (problem.empty()) {
    const int64_t rows = binder.shape(out)[0], named = std::ssize(head.labels);
    if (rows > kMostLabels) {
      problem = fmt::format("it has {} labels; at most {} are read", rows, kMostLabels);
    } else if (named > 0 && named != rows) {
      problem = fmt::format("config.json's id2label names {} labels, but its matrix has {} rows",
                            named, rows);
    }
    for (int64_t i = named; problem.empty() && i < rows; ++i)
      head.labels.push_back(fmt::format("LABEL_{}", i));
    using Output = ClassifierHead::Output;
    head.output =
        checkpoint.classifier_output.value_or(rows == 1 ? Output::kSigmoid : Output::kSoftmax);
  }
  Weights& weights = bound.weights;
  auto& classifier = checkpoint.labels_tokens ? weights.token_classifier : weights.classifier;
  classifier = std::move(head);
  if (problem.empty()) problem = head_problem(binder, checkpoint, weights, "classifier");
  if (problem.empty()) return false;
  classifier.reset();
  bound.notes.push_back("the classification head is not used: " + problem);
  return true;
}

/// Norms whose files hold γ − 1 get γ, in memory that the result keeps.
std::shared_ptr<const void> add_one_to_norms(const std::vector<Parameter>& parameters) {
  const auto values = std::make_shared<std::deque<std::vector<float>>>();
  for (const Parameter& parameter : parameters) {
    if (!parameter.module.ends_with("norm") || !parameter.tensor->present()) continue;
    std::vector<float>& weight = values->emplace_back(parameter.tensor->to_float());
    for (float& value : weight) value += 1;
    *parameter.tensor = {DType::kFloat32, parameter.shape,
                         reinterpret_cast<const std::byte*>(weight.data())};
  }
  return values;
}

/// Names the heads that phasor does not run: matrices beside the encoder that read its last states.
/// The pooler belongs to the encoder, and matrices with a row for each piece are embeddings or
/// decoders. `classifier_is_noted`: a note names the classifier already.
void note_unused_heads(const TensorFiles& files, const ModelConfig& config,
                       bool classifier_is_noted, BoundWeights& bound) {
  std::vector<std::string> heads;
  for (const std::string& name : bound.unused) {
    const std::string module = name.substr(0, name.find('.'));
    if (name != module + ".weight" || module == "pooler") continue;
    const bool of_classifier = module.ends_with("classifier") || module == "dense";
    if (classifier_is_noted && of_classifier) continue;
    const std::vector<int64_t>& shape = files.shape(name);
    if (shape.size() != 2 || shape[1] != config.d_model || shape[0] == config.vocab_size) continue;
    heads.push_back(fmt::format("{} {}", name, shape_text(shape)));
  }
  if (heads.empty()) return;
  bound.notes.push_back(
      fmt::format("the file has {}, which phasor does not use", fmt::join(heads, ", ")));
}

}  // namespace

BoundWeights bind_weights(const TensorFiles& files, const CheckpointConfig& checkpoint) {
  const Family& family = *checkpoint.family;
  Binder binder(files, family, checkpoint.labels_tokens);
  BoundWeights bound;
  add_mlm_head(binder, checkpoint, bound);
  const bool classifier_is_noted = add_classifier(binder, checkpoint, bound);
  std::vector<Parameter> all = parameters(checkpoint.config, bound.weights);
  for (Parameter& parameter : all) {
    const bool decoder = parameter.module == "mlm.decoder";
    if (decoder) parameter.required = false;
    if (parameter.module == "token_type_embedding") {
      parameter.required = checkpoint.needs_token_types;
    }
    const bool of_head = parameter.module == "mlm.dense" || parameter.module == "mlm.norm";
    if (family.spelled_out && of_head && parameter.leaf == "weight") parameter.required = true;
    if (family.optional_biases && parameter.leaf == "bias") parameter.required = false;
    if (!binder.bind(parameter) && decoder) *parameter.tensor = bound.weights.token_embedding;
  }
  if (family.norms_plus_one) bound.computed = add_one_to_norms(all);
  if (!family.spelled_out) binder.check_blocks(checkpoint.config.num_blocks());
  bound.unused = binder.unused();
  if (checkpoint.maps_tokens) std::erase(bound.unused, kTokenMapWeight);
  note_unused_heads(files, checkpoint.config, classifier_is_noted, bound);
  return bound;
}

std::string compare_with_formula(const ModelConfig& config, const Tensor& position_table) {
  if (config.position.kind != PositionKind::kSinusoidal || !position_table.present()) return {};
  double tolerance = kFormulaTolerance;
  if (position_table.dtype == DType::kFloat16) tolerance += 0x1p-12;
  if (position_table.dtype == DType::kBFloat16) tolerance += 0x1p-9;

  const int64_t width = config.embedding_width();
  const std::vector<float> stored = position_table.to_float();  // [rows, E]
  const auto pairs = column_pairs(config.position.layout, width, config.position.base);
  std::vector<double> row(width);  // [E]
  double largest = 0;
  int64_t where = 0;
  for (int64_t p = 0; p < position_table.shape[0]; ++p) {
    // Row 0 of fairseq's table is position 0 too: its own rows never begin before it.
    sinusoidal_row(pairs, static_cast<double>(p), width, row.data());
    for (int64_t c = 0; c < width; ++c) {
      const double difference = std::abs(stored[p * width + c] - row[c]);
      if (difference > largest || std::isnan(difference)) {
        largest = difference;
        where = p;
      }
    }
  }
  if (largest <= tolerance) return {};
  return fmt::format(
      "the stored position table is used; it differs from the {} formula by up to {:.2g} (row {})",
      to_string(config.position.layout), largest, where);
}

}  // namespace phasor::internal
