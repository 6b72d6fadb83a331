#include "infer/commands/embed/embedder.h"

#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <variant>

#include "files/json_writer.h"
#include "files/utf8.h"
#include "infer/cli/save.h"
#include "infer/cli/terminal.h"
#include "infer/matrix.h"
#include "lens/study/run.h"
#include "phasor/fields.h"

namespace infer {
namespace {

using phasor::Overflow;
using phasor::VectorKind;

bool looks_up(const phasor::TextOptions& how, const phasor::Model& model) {
  return (phasor::uses_of(how) & phasor::kUseSparse) != 0 && how.role == phasor::TextRole::kQuery &&
         !model.sparse().query_weights.empty();
}

std::string how_dense(const Embedder& embedder) {
  const phasor::TextOptions& how = embedder.given.how;
  const std::string source = how.pooling.empty() ? embedder.model->sentence().source : "--pooling";
  return fmt::format("sentence vectors: {} ({})", to_string(embedder.encoder.pooling(how)),
                     source.empty() ? "the default: no sentence-transformers files" : source);
}

std::string how_sparse(const Embedder& embedder) {
  return fmt::format("sparse vectors: {}{}", embedder.model->sparse().source,
                     looks_up(embedder.given.how, *embedder.model) ? ", queries looked up" : "");
}

std::string how_tokens(const Embedder& embedder) {
  return fmt::format("token vectors of width {}: {}", embedder.model->token_vectors().width(),
                     embedder.model->token_vectors().source);
}

/// What people are told of a kind of vectors. Where there is no row, its name says enough.
struct KindText {
  VectorKind kind;
  std::string_view items;                        // that a line has
  std::string (*how)(const Embedder& embedder);  // it is made
};
constexpr KindText kKindTexts[] = {{VectorKind::kDense, "numbers", how_dense},
                                   {VectorKind::kSparse, "weights", how_sparse},
                                   {VectorKind::kTokens, "vectors", how_tokens},
                                   {VectorKind::kStates, "states", [](const Embedder&) {
                                      return std::string("the last state of each token");
                                    }}};

/// The kinds that are made, with what is told of them.
std::vector<KindText> kinds_of(const phasor::TextOptions& how) {
  std::vector<KindText> kinds;
  const auto names = phasor::names<VectorKind>().all;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto kind = static_cast<VectorKind>(i);
    if ((phasor::uses_of(how) & use_of(kind)) == 0) continue;
    const auto known = std::ranges::find(kKindTexts, kind, &KindText::kind);
    kinds.push_back(known != std::end(kKindTexts) ? *known : KindText{kind, names[i], nullptr});
  }
  return kinds;
}

/// What the names of a kind's arrays begin with: "token_".
std::string prefix_of(VectorKind kind) {
  std::string name(to_string(kind));
  if (name.ends_with('s')) name.pop_back();
  return name + "_";
}

/// The items of a text whose arrays' names begin so; those that have values, the largest first.
void write_items(const Columns& text, const std::string& name, const phasor::Tokenizer& tokenizer,
                 JsonWriter& json) {
  const auto ids = text.all<int32_t>(name + "ids"), indices = text.all<int32_t>(name + "indices");
  const auto values = text.all<float>(name + "values"), vectors = text.all<float>(name + "vectors");
  const auto spans = text.all<int64_t>(name + "spans");
  const auto piece = [&](int32_t id) {
    return id < tokenizer.vocab_size() ? tokenizer.piece(id) : "";
  };
  const size_t width = ids.empty() ? 0 : vectors.size() / ids.size();
  const std::vector<float> alike(ids.size());  // stay in order
  json.array(best_first(ids.empty() ? values : alike), [&](size_t i) {
    json.object([&] {
      if (!ids.empty()) json.member("token", piece(ids[i]));
      if (!spans.empty()) json.member("start", spans[2 * i], "stop", spans[2 * i + 1]);
      if (!vectors.empty()) json.member("vector", vectors.subspan(i * width, width));
      if (!values.empty())
        json.member("index", indices[i], "value", values[i], "word", piece(indices[i]));
    });
  });
}

}  // namespace

Embedder::Embedder(const EmbedArguments& arguments)
    : given(arguments),
      model(phasor::Model::load(given.common.model, load_options(given.common))),
      encoder(model, encoder_options(given.common)) {
  const phasor::TextOptions& how = given.how;
  if ((given.nearest > 0 || given.similarity) && !model->has_sentence() &&
      (model->has_token_vectors() || model->has_sparse())) {
    throw phasor::ModelError(
        fmt::format("{} compares one vector of each text, and {} makes {}",
                    given.nearest > 0 ? "--nearest" : "--similarity", given.common.model,
                    model->has_token_vectors()
                        ? "one of each token; infer rank -m MODEL QUERY sorts lines by these"
                        : "sparse ones; infer embed --sparse -o FILE.safetensors writes these, and "
                          "the products of their rows are similarities"),
        phasor::ErrorCode::kUnsupported);
  }
  model->tokenizer();  // or the sentence why there is none
  const bool runs_all = how.overflow == Overflow::kClamp || how.overflow == Overflow::kInterpolate;
  if (looks_up(how, *model) && (runs_all || how.overflow == Overflow::kWindow))
    throw UsageError(
        "--overflow: queries that are looked up are cut (truncate), or an error (error)");
  std::vector<std::string> kinds;
  for (const KindText& kind : kinds_of(how))
    kinds.push_back(kind.how != nullptr ? kind.how(*this) : std::string(to_string(kind.kind)));
  if (given.common.quiet) return;
  report_note(fmt::format("{}, {}", fmt::join(kinds, "; "), to_string(encoder.precision())));
  tell(given, *model);
  const int64_t longest = model->text().max_tokens;
  if (longest > 0 && runs_all && model->max_tokens().value_or(longest + 1) > longest) {
    report_note(
        fmt::format("--overflow {} runs whole texts, although the model's files cut them to {} "
                    "tokens; window keeps to that length",
                    to_string(*how.overflow), longest));
  }
}

int64_t Embedder::bytes_of_line() const {
  constexpr int64_t kTokens = 32;
  int64_t numbers = 0;
  for (const KindText& kind : kinds_of(given.how)) {
    numbers += kind.kind == VectorKind::kDense ? encoder.embedding_width(given.how)
                                               : kTokens * model->config().d_model;
  }
  return numbers * int64_t{sizeof(float)};
}

void VectorCounts::add(const phasor::Vectors& vectors) {
  lines += vectors.size();
  for (const phasor::ResultArray& array : vectors.arrays()) {
    if (array.rows == phasor::ResultArray::Rows::kOffsets)
      items[std::string(array.name)] += std::get<std::span<const int64_t>>(array.values).back();
  }
}

std::string Embedder::summary(const VectorCounts& counts) const {
  std::vector<std::string> kinds;
  for (const KindText& kind : kinds_of(given.how)) {
    const auto found = counts.items.find(prefix_of(kind.kind) + "offsets");
    const int64_t each = found == counts.items.end()
                             ? encoder.embedding_width(given.how)
                             : (found->second + counts.lines / 2) / counts.lines;
    kinds.push_back(fmt::format("{} {}", each, kind.items));
  }
  return fmt::format("{} each", fmt::join(kinds, ", "));
}

std::string Embedder::json_of(const phasor::Vectors& vectors, int64_t i, int64_t line) const {
  Columns text;
  text.add(vectors.arrays(), i, 1);
  JsonWriter json;
  json.object([&] {
    json.member("line", line);
    for (const KindText& kind : kinds_of(given.how)) {
      if (kind.kind == VectorKind::kDense)
        json.member("embedding", vectors[i]);
      else
        write_items(text, prefix_of(kind.kind), model->tokenizer(), json.key(to_string(kind.kind)));
    }
  });
  return json.take() + "\n";
}

std::map<std::string, std::string> Embedder::metadata() const {
  const auto valid = [](const std::filesystem::path& name) {
    return phasor::internal::to_valid_utf8(name.string()).text;
  };
  const auto folder = weakly_canonical(model->folder());
  std::map<std::string, std::string> metadata;
  for (const phasor::Field& field : phasor::fields()) {
    if (field.text != nullptr && field.is_set(given.how))
      metadata.emplace(field.name, valid(field.text(given.how)));
  }
  metadata["model"] = valid(phasor::internal::short_name(folder.string()));
  metadata["precision"] = to_string(encoder.precision());
  const auto snapshots = folder.parent_path(), cached = snapshots.parent_path().filename();
  if (snapshots.filename() == "snapshots" && cached.string().starts_with("models--"))
    metadata["revision"] = valid(folder.filename());
  const uint32_t uses = phasor::uses_of(given.how);
  if ((uses & phasor::kUseDense) != 0) metadata["pooling"] = to_string(encoder.pooling(given.how));
  if ((uses & phasor::kUseTokens) != 0)
    metadata["similarity"] = model->token_vectors().mean ? "meanmaxsim" : "maxsim";
  return metadata;
}

void Embedder::save_vectors(const Columns& columns) const {
  std::vector<SavedTensor> tensors;
  std::array<int64_t, 2> shape = {0, model->config().vocab_size};
  const std::vector<phasor::ResultArray> arrays = columns.arrays();
  for (const phasor::ResultArray& array : arrays) {
    const auto add = [&]<typename T>(std::span<const T> values) {
      if constexpr (!std::is_same_v<T, std::string>) {
        std::vector<int64_t> sizes = {std::ssize(values)};
        if (array.columns > 0) sizes = {std::ssize(values) / array.columns, array.columns};
        if (array.name == "sparse_offsets") shape[0] = sizes[0] - 1;
        tensors.emplace_back(std::string(array.name), std::move(sizes), values);
      }
    };
    std::visit(add, array.values);
  }
  if (shape[0] > 0)
    tensors.emplace_back("sparse_shape", std::vector<int64_t>{2}, std::span<const int64_t>(shape));
  save("-o", given.output, tensors, metadata());
}

phasor::Similarity Embedder::similarity() const {
  return model->has_sentence() ? model->sentence().similarity : phasor::Similarity::kCosine;
}

}  // namespace infer
