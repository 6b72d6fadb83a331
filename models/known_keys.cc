#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "models/config_keys.h"

namespace phasor::internal {
namespace {

struct KnownKeys {
  std::string_view reason;
  /// Separated by spaces. A name that ends in '*' stands for all that begin so.
  std::string_view keys;
};

constexpr KnownKeys kConfigKeys[] = {
    {"training alone",
     "activation_dropout attention_dropout attention_probs_dropout_prob attn_pdrop "
     "classifier_dropout classifier_dropout_prob decoder_layerdrop dropout dropout_rate "
     "embd_pdrop embedding_dropout encoder_layerdrop gradient_checkpointing hidden_dropout "
     "hidden_dropout_prob init_std initializer_cutoff_factor initializer_factor "
     "initializer_range layerdrop mlp_dropout pooler_dropout qa_dropout repad_logits_with_grad "
     "resid_pdrop seq_classif_dropout sparse_pred_ignore_index sparse_prediction "
     "summary_first_dropout summary_last_dropout"},
    {"generation of text",
     "bad_words_ids begin_suppress_tokens diversity_penalty do_sample early_stopping "
     "encoder_no_repeat_ngram_size exponential_decay_length_penalty forced_bos_token_id "
     "forced_eos_token_id length_penalty max_length min_length no_repeat_ngram_size "
     "num_beam_groups num_beams num_return_sequences prefix remove_invalid_values "
     "final_logit_softcapping repetition_penalty return_dict_in_generate suppress_tokens "
     "task_specific_params* "
     "temperature top_k top_p typical_p use_cache"},
    {"the decoder",
     "cross_attention_hidden_size decoder_attention_heads decoder_ffn_dim decoder_layers "
     "decoder.* decoder_start_token_id decoder_vocab_size is_encoder_decoder num_decoder_layers "
     "scale_decoder_outputs share_encoder_decoder_embeddings tie_encoder_decoder"},
    {"what a call of Transformers returns, and how it computes",
     "_attn_implementation* add_cross_attention attn_implementation chunk_size_feed_forward "
     "dense_seq_output deterministic_flash_attn experts_implementation fused_bias_fc "
     "fused_dropout_add_ln last_layer_subset output_attentions output_hidden_states "
     "output_scores pack_qkv reference_compile return_dict tf_legacy_loss torchscript "
     "unpad_inputs use_bfloat16 use_flash_attn use_memory_efficient_attention use_xentropy "
     "window_size"},
    {"how the file was made",
     "_name_or_path _num_labels matryoshka_dimensions model_name use_pooler xla_device "
     "directionality dtype finetuning_task sentence_transformers.version torch_dtype "
     "transformers.js_config* transformers_version"},
    {"Transformers does not read it in this family",
     "_sliding_window_pattern add_bias_logits add_final_layer_norm architectures classif_dropout "
     "classifier_head d_kv "
     "extra_pos_embeddings force_bos_token_to_be_generated gradient_accumulation head_dim "
     "layer_norm_eps legacy mask_token_id max_window_layers n_positions normalize_before "
     "normalize_embedding "
     "num_hidden_layers output_past pooler_fc_size pooler_hidden_size pooler_num_attention_heads "
     "pooler_num_fc_layers pooler_size_per_head pooler_type pretraining_tp rotary_value save_step "
     "static_position_embeddings type_vocab_size summary_activation summary_type "
     "summary_use_proj vocab_type"},
    {"relative attention, which config.json turns off",
     "max_relative_positions norm_rel_ebd pos_att_type position_buckets share_att_key"},
    {"the weights' file says it",
     "attention_bias classifier_bias decoder_bias layer_norm_bias mlp_bias mlp_fc1_bias "
     "mlp_fc2_bias norm_bias qkv_proj_bias"},
    {"phasor does not pad, and takes ids of special tokens from the tokenizer",
     "bos_token_id cls_token_id eos_token_id pad_token_id sep_token_id tokenizer_class "
     "unk_token_id"},
    {"a classification head, which this checkpoint does not have or phasor does not use",
     "classifier_activation classifier_pooling id2label* pooler_hidden_act problem_type"},
    {"sentence-transformers' files say it", "emb_pooler"},
    {"config_sentence_transformers.json says it", "sentence_transformers*"},
    {"id2label says it", "label2id* num_labels"},
};

constexpr KnownKeys kTokenizerConfigKeys[] = {
    {"how ids become text again",
     "clean_up_tokenization_spaces decode_with_prefix_space spaces_between_special_tokens"},
    {"how the file was made",
     "_from_auto backend device_map from_slow is_fast is_local local_files_only merges_file "
     "model_input_names_ name_or_path processor_class separate_vocabs source_lang source_spm "
     "special_tokens_map_file target_lang target_spm target_vocab_file tokenizer_file use_fast "
     "verbose vocab_file"},
    {"phasor does not pad, and cuts texts as a call asks",
     "max_length pad_to_multiple_of pad_token_type_id padding padding_side stride truncation "
     "truncation_strategy"},
    {"a text is plain text unless a call asks", "split_special_tokens"},
    {"conversations", "chat_template* extra_special_tokens_pattern"},
    {"where a byte is in the text", "errors trim_offsets"},
    {"this tokenizer's class does not read it",
     "add_bos_token add_eos_token add_prefix_space bos_token cls_token do_basic_tokenize "
     "do_lower_case eos_token extra_ids keep_accents language_codes legacy legacy_behaviour "
     "mask_token mask_token_sent never_split num_madeup_words offset pad_token remove_space "
     "sep_token split_by_punct src_lang strip_accents tgt_lang tokenize_chinese_chars "
     "tokenizer_class unk_id unk_token vocab_type wordpiece_prefix wordpieces_prefix"},
};

constexpr KnownKeys kTokenizerJsonKeys[] = {
    {"how ids become text again", "decoder* model.type version"},
    {"where a token is in the text",
     "post_processor.add_prefix_space post_processor.processors.add_prefix_space "
     "post_processor.processors.trim_offsets post_processor.processors.use_regex "
     "post_processor.trim_offsets post_processor.use_regex "
     "pre_tokenizer.pretokenizers.trim_offsets pre_tokenizer.trim_offsets"},
    {"phasor does not pad, and cuts texts as a call asks",
     "padding* truncation.max_length truncation.strategy truncation.stride"},
    {"the rules of the tokenizer's class in Transformers stand in place of it", "model.unk_token"},
    {"a special token that no template puts round a text",
     "post_processor.special_tokens.* post_processor.processors.special_tokens.*"},
    {"the tokenizer's older files are followed",
     "model normalizer post_processor pre_tokenizer truncation"},
};

constexpr KnownKeys kSentenceKeys[] = {
    {"how the file was made", "__version__* model_type version"},
    {"a classification head, which this checkpoint does not have or phasor does not use",
     "activation_fn"},
    {"how Transformers computes", "backend keep_in_fp32_modules unpad_inputs"},
    {"other inputs than texts",
     "modality_config.audio* modality_config.image* modality_config.message* "
     "modality_config.video* processing_kwargs.audio* processing_kwargs.chat_template* "
     "processing_kwargs.image* processing_kwargs.video*"},
    {"phasor does not pad",
     "processing_kwargs.common.padding processing_kwargs.common.padding_side "
     "processing_kwargs.common.return_tensors processing_kwargs.text.pad_to_multiple_of "
     "processing_kwargs.text.padding processing_kwargs.text.padding_side "
     "processing_kwargs.text.return_tensors processor_kwargs.padding_side "
     "processor_kwargs.use_fast tokenizer_args.padding_side tokenizer_args.use_fast"},
    {"the precision that a call asks for",
     "model_args.attn_implementation model_args.dtype model_args.torch_dtype "
     "model_kwargs.attn_implementation model_kwargs.dtype model_kwargs.torch_dtype"},
};

constexpr KnownKeys kModuleKeys[] = {
    {"a name", "idx name"},
    {"what a module is told of a call's task, which these modules do not use", "kwargs*"},
};

constexpr KnownKeys kModuleConfigKeys[] = {
    {"pooling_mode says it", "pooling_mode_*"},
    {"how the file was made", "transformers_version"},
};

struct KnownFile {
  std::string_view file;
  std::span<const KnownKeys> keys;
};

constexpr KnownFile kFiles[] = {
    {"tokenizer_config.json", kTokenizerConfigKeys},
    {"special_tokens_map.json", kTokenizerConfigKeys},
    {"tokenizer.json", kTokenizerJsonKeys},
    {"config_sentence_transformers.json", kSentenceKeys},
    {"modules.json", kModuleKeys},
};

std::span<const KnownKeys> keys_of(std::string_view file) {
  for (const KnownFile& known : kFiles) {
    if (known.file == file) return known.keys;
  }
  if (file.starts_with("sentence_") && file.find('/') == file.npos) return kSentenceKeys;
  if (file == "config.json") return kConfigKeys;
  return kModuleConfigKeys;
}

bool matches(std::string_view key, std::string_view known) {
  if (!known.ends_with('*')) return key == known;
  known.remove_suffix(1);
  return key.starts_with(known);
}

bool has(std::string_view keys, std::string_view key) {
  while (!keys.empty()) {
    const size_t end = std::min(keys.find(' '), keys.size());
    if (matches(key, keys.substr(0, end))) return true;
    keys.remove_prefix(std::min(end + 1, keys.size()));
  }
  return false;
}

}  // namespace

std::string_view why_unused(std::string_view file, std::string_view key) {
  for (const KnownKeys& row : keys_of(file)) {
    if (has(row.keys, key)) return row.reason;
  }
  return {};
}

void report_others(const ModelFolder& folder, std::vector<std::string>& unused,
                   std::vector<std::string>& notes) {
  constexpr size_t kNamed = 8;
  for (const auto& [file, keys] : folder.others()) {
    std::vector<std::string> unknown;
    size_t count = 0;
    for (const std::string& key : keys) {
      if (!why_unused(file, key).empty()) {
        unused.push_back(fmt::format("{}: {}", file, key));
      } else if (++count <= kNamed) {
        unknown.push_back(value_text(key));
      }
    }
    if (unknown.empty()) continue;
    notes.push_back(fmt::format("{}: phasor does not know, and does not use, the {} {}{}", file,
                                count == 1 ? "key" : "keys", fmt::join(unknown, ", "),
                                count > kNamed ? fmt::format(", … ({} in all)", count) : ""));
  }
}

}  // namespace phasor::internal
