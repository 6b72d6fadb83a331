// Versions, models and tokenization.
#include <fmt/format.h>

#include "capi/boundary.h"
#include "capi/handles.h"
#include "models/model_info.h"
#include "phasor/errors.h"
#include "phasor/hooks.h"
#include "phasor/version.h"

namespace phasor::internal {
namespace {

void tokenize(const Tokenizer& tokenizer, std::span<const std::string_view> first,
              const std::vector<std::string_view>* second, const TokenizeOptions& options,
              phasor_result& result) {
  std::vector<int64_t> offsets = {0}, dropped, invalid;
  std::vector<int32_t> ids, types;
  std::vector<int64_t> spans;
  std::vector<std::string>& pieces = result.strings["pieces"];
  for (size_t i = 0; i < first.size(); ++i) {
    Tokens tokens = second != nullptr ? tokenizer.encode_pair(first[i], (*second)[i], options)
                                      : tokenizer.encode(first[i], options);
    ids.insert(ids.end(), tokens.ids.begin(), tokens.ids.end());
    std::move(tokens.pieces.begin(), tokens.pieces.end(), std::back_inserter(pieces));
    tokens.token_types.resize(tokens.ids.size());
    types.insert(types.end(), tokens.token_types.begin(), tokens.token_types.end());
    for (const auto& [begin, end] : tokens.offsets) spans.insert(spans.end(), {begin, end});
    offsets.push_back(std::ssize(ids));
    dropped.push_back(tokens.dropped);
    invalid.push_back(tokens.invalid_bytes);
  }
  const std::vector<int64_t> shape_of_spans = {std::ssize(ids), 2};
  result.own("token_ids", std::move(ids));
  result.own("offsets", std::move(offsets));
  result.own("dropped_tokens", std::move(dropped));
  result.own("invalid_bytes", std::move(invalid));
  if (second != nullptr) result.own("token_types", std::move(types));
  if (options.offset_unit != OffsetUnit::kNone)
    result.own("spans", std::move(spans), shape_of_spans);
}

/// "blocks.{}.attn.hook_q" and so on, in the order of the enum.
const std::vector<std::string>& hook_templates() {
  static const std::vector<std::string> kTemplates = [] {
    std::vector<std::string> templates;
    for (int i = 0; i < kNumHooks; ++i) {
      std::string& path = templates.emplace_back(hook_path(static_cast<Hook>(i), 0));
      if (path.starts_with("blocks.0.")) path.replace(7, 1, "{}");
    }
    return templates;
  }();
  return kTemplates;
}

int32_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return PHASOR_FLOAT16;
    case DType::kBFloat16:
      return PHASOR_BFLOAT16;
    case DType::kFloat64:
      return PHASOR_FLOAT64;
    default:
      return PHASOR_FLOAT32;
  }
}

}  // namespace
}  // namespace phasor::internal

extern "C" {

using namespace phasor::internal;  // NOLINT

int32_t phasor_interface_version(void) { return PHASOR_INTERFACE_VERSION; }

const char* phasor_version(void) { return PHASOR_VERSION; }

const char* phasor_backend_version(void) { return made_once<phasor::Encoder::backend_version>(""); }

phasor_status phasor_model_load(const char* folder_or_name, const phasor_load_options* options,
                                phasor_model** model) {
  return guarded([&] {
    require(folder_or_name, "the folder or name of the model");
    require(model, "the place for the model");
    const phasor_load_options how =
        options_of(options, "phasor_load_options", &phasor_load_options::reserved);
    *model = new phasor_model{phasor::Model::load(
        folder_or_name, {.language = how.language != nullptr ? how.language : "",
                         .copy = how.copy != 0,
                         .follow_links = how.follow_links != 0})};
  });
}

void phasor_model_free(phasor_model* model) { delete model; }

const char* phasor_model_info(const phasor_model* model) {
  if (model == nullptr) return nullptr;
  const phasor_status status = guarded(
      [&] { std::call_once(model->described, [&] { model->info = model_info(*model->model); }); });
  return status == PHASOR_OK ? model->info.c_str() : nullptr;
}

phasor_status phasor_model_tensors(const phasor_model* model, phasor_result** result) {
  return make_result(result, [&](phasor_result& made) {
    require(model, "the model");
    made.keep(model->model);
    for (const auto& [name, tensor] : model->model->parameters()) {
      phasor_array array = array_of(static_cast<const float*>(nullptr), tensor.shape);
      array.data = tensor.data;
      array.type = type_of(tensor.dtype);
      made.borrow(name, -1, array);
    }
  });
}

phasor_status phasor_add_models_folder(const char* folder) {
  return guarded([&] {
    require(folder, "the folder of models");
    phasor::add_models_folder(folder);
  });
}

const char* phasor_hook_name(int32_t i) {
  const char* name = nullptr;
  guarded([&] {
    if (i >= 0 && i < phasor::kNumHooks) name = hook_templates()[i].c_str();
  });
  return name;
}

phasor_status phasor_tokenize(const phasor_model* model, const phasor_texts* first,
                              const phasor_texts* second, const phasor_tokenize_options* options,
                              phasor_result** result) {
  return make_result(result, [&](phasor_result& made) {
    require(model, "the model");
    const phasor_tokenize_options how =
        options_of(options, "phasor_tokenize_options", &phasor_tokenize_options::max_tokens);
    const auto texts = texts_of(first, "texts");
    std::vector<std::string_view> seconds;
    if (second != nullptr) {
      seconds = texts_of(second, "second texts");
      if (seconds.size() != texts.size()) {
        throw phasor::InvalidArgument(
            fmt::format("there are {} first and {} second texts; each pair has one of either",
                        texts.size(), seconds.size()));
      }
    }
    tokenize(model->model->tokenizer(), texts, second != nullptr ? &seconds : nullptr,
             {.parse_special = how.parse_special != 0,
              .max_tokens = how.max_tokens,
              .prompt_bytes = how.prompt_bytes,
              .truncation_side = side_of(how.truncation_side),
              .no_special_tokens = how.no_special_tokens != 0,
              .offset_unit = unit_of(how.offset_unit)},
             made);
  });
}

phasor_status phasor_pieces(const phasor_model* model, const int32_t* token_ids, int64_t n,
                            phasor_result** result) {
  return make_result(result, [&](phasor_result& made) {
    require(model, "the model");
    std::vector<std::string>& pieces = made.strings["pieces"];
    for (const int32_t id : array_at(token_ids, n, "token ids")) {
      pieces.push_back(model->model->tokenizer().piece(id));
    }
  });
}

phasor_status phasor_position_vectors(const phasor_model* model, int64_t num_tokens,
                                      const phasor_positions* positions, int32_t overflow,
                                      phasor_result** result) {
  return make_result(result, [&](phasor_result& made) {
    require(model, "the model");
    const phasor::ModelConfig& config = model->model->config();
    made.own("vectors",
             model->model->position_vectors(num_tokens, positions_of(positions, config.position),
                                            overflow_of(overflow, phasor::Overflow::kError)),
             {num_tokens, config.embedding_width()});
  });
}

phasor_status phasor_stop_create(phasor_stop** stop) {
  return guarded([&] {
    require(stop, "the place for the stop");
    *stop = new phasor_stop;
  });
}

void phasor_stop_request(phasor_stop* stop) {
  if (stop != nullptr) stop->source.request_stop();
}

void phasor_stop_free(phasor_stop* stop) { delete stop; }

}  // extern "C"
