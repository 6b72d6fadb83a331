// Versions, models and tokenization.
#include "capi/boundary.h"
#include "files/refuse.h"
#include "phasor/hooks.h"
#include "phasor/lens/observe.h"
#include "phasor/model_info.h"
#include "phasor/precision.h"
#include "phasor/version.h"

namespace phasor::internal {
namespace {

/// "blocks.{}.attn.hook_q" and so on, a line each, in the order of the enum.
std::string hook_names() {
  std::string names;
  for (int i = 0; i < kNumHooks; ++i) {
    std::string path = hook_path(static_cast<Hook>(i), 0);
    if (path.starts_with("blocks.0.")) path.replace(7, 1, "{}");
    names += path + (i + 1 < kNumHooks ? "\n" : "");
  }
  return names;
}

int32_t type_of(DType dtype) {
  return dtype == DType::kFloat16    ? PHASOR_FLOAT16
         : dtype == DType::kBFloat16 ? PHASOR_BFLOAT16
         : dtype == DType::kFloat64  ? PHASOR_FLOAT64
                                     : PHASOR_FLOAT32;
}

}  // namespace
}  // namespace phasor::internal

extern "C" {

using namespace phasor::internal;  // NOLINT

int32_t phasor_interface_version(void) { return PHASOR_INTERFACE_VERSION; }

const char* phasor_info(const char* what) {
  const std::string_view name = what != nullptr ? what : "";
  return name == "version"               ? PHASOR_VERSION
         : name == "backend_version"     ? made_once<phasor::Encoder::backend_version>()
         : name == "faster_than_float32" ? made_once<phasor::faster_than_float32>()
         : name == "hooks"               ? made_once<hook_names>()
         : name == "views"               ? made_once<phasor::lens::views_json>()
                                         : nullptr;
}

phasor_status phasor_model_load(const char* folder_or_name, const phasor_load_options* options,
                                phasor_model** model) {
  return guarded([&] {
    require(folder_or_name, "the folder or name of the model");
    require(model, "the place for the model");
    const phasor_load_options how =
        options_of(options, "phasor_load_options", &phasor_load_options::follow_links);
    *model = new phasor_model{phasor::Model::load(
        folder_or_name, {.language = how.language != nullptr ? how.language : "",
                         .copy = how.copy != 0,
                         .follow_links = how.follow_links != 0})};
  });
}

void phasor_model_free(phasor_model* model) { delete model; }

const char* phasor_model_info(const phasor_model* model) {
  if (model == nullptr) return nullptr;
  const auto describe = [&] { model->info = phasor::model_info(*model->model); };
  const phasor_status status = guarded([&] { std::call_once(model->described, describe); });
  return status == PHASOR_OK ? model->info.c_str() : nullptr;
}

phasor_status phasor_model_tensors(const phasor_model* model, phasor_result** result) {
  return make_result(result, [&](phasor_result& made) {
    require(model, "the model");
    made.keep(model->model);
    for (const auto& [name, tensor] : model->model->parameters()) {
      phasor_array array = array_of<float>(nullptr, tensor.shape);
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

phasor_status phasor_tokenize(const phasor_model* model, const phasor_texts* first,
                              const phasor_texts* second, const phasor_tokenize_options* options,
                              phasor_result** result) {
  return make_result(result, [&](phasor_result& made) {
    require(model, "the model");
    const phasor_tokenize_options how =
        options_of(options, "phasor_tokenize_options", &phasor_tokenize_options::truncation_side);
    const phasor::TokenizeOptions tokenize = {
        .parse_special = how.parse_special != 0,
        .max_tokens = how.max_tokens,
        .prompt_bytes = how.prompt_bytes,
        .truncation_side = value_of(how.truncation_side, phasor::TruncationSide::kTokenizer),
        .no_special_tokens = how.no_special_tokens != 0,
        .offset_unit = value_of(how.offset_unit, phasor::OffsetUnit::kNone)};
    const auto texts = texts_of(first, "texts");
    const auto seconds = second != nullptr ? texts_of(second, "second texts") : texts;
    if (seconds.size() != texts.size()) {
      refuse<phasor::InvalidArgument>(
          "there are {} first and {} second texts; each pair has one of either", texts.size(),
          seconds.size());
    }
    const phasor::Tokenizer& tokenizer = model->model->tokenizer();
    std::vector<int64_t> offsets = {0}, dropped, invalid, spans;
    std::vector<int32_t> ids, types;
    std::vector<std::string>& pieces = made.strings["pieces"];
    for (size_t i = 0; i < texts.size(); ++i) {
      phasor::Tokens tokens = second != nullptr
                                  ? tokenizer.encode_pair(texts[i], seconds[i], tokenize)
                                  : tokenizer.encode(texts[i], tokenize);
      ids.insert(ids.end(), tokens.ids.begin(), tokens.ids.end());
      std::ranges::move(tokens.pieces, std::back_inserter(pieces));
      tokens.token_types.resize(tokens.ids.size());
      types.insert(types.end(), tokens.token_types.begin(), tokens.token_types.end());
      for (const auto& [begin, end] : tokens.offsets) spans.insert(spans.end(), {begin, end});
      offsets.push_back(std::ssize(ids));
      dropped.push_back(tokens.dropped);
      invalid.push_back(tokens.invalid_bytes);
    }
    const std::vector<int64_t> shape = {std::ssize(ids), 2};
    made.own("token_ids", std::move(ids));
    made.own("offsets", std::move(offsets));
    made.own("dropped_tokens", std::move(dropped));
    made.own("invalid_bytes", std::move(invalid));
    if (second != nullptr) made.own("token_types", std::move(types));
    if (tokenize.offset_unit != phasor::OffsetUnit::kNone)
      made.own("spans", std::move(spans), shape);
  });
}

phasor_status phasor_pieces(const phasor_model* model, const int32_t* token_ids, int64_t n,
                            phasor_result** result) {
  return make_result(result, [&](phasor_result& made) {
    require(model, "the model");
    std::vector<std::string>& pieces = made.strings["pieces"];
    for (const int32_t id : array_at(token_ids, n, "token ids"))
      pieces.push_back(model->model->tokenizer().piece(id));
  });
}

phasor_status phasor_position_vectors(const phasor_model* model, int64_t num_tokens,
                                      const phasor_positions* positions, const char* overflow,
                                      phasor_result** result) {
  return make_result(result, [&](phasor_result& made) {
    require(model, "the model");
    const phasor::ModelConfig& config = model->model->config();
    made.own("vectors",
             model->model->position_vectors(num_tokens, positions_of(positions, config.position),
                                            value_of(overflow, phasor::Overflow::kError)),
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
