// The C interface: its functions in any order, with any arguments that C can pass, null among them.
// Handles are those that functions gave and nobody has freed.
#include <array>
#include <list>
#include <string>
#include <vector>

#include "phasor/phasor_c.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/bert_folder.h"

namespace phasor::fuzz {
namespace {

/// Handles of one kind.
template <typename Handle>
class Pool {
 public:
  explicit Pool(void (*free)(Handle*)) : free_(free) {}
  ~Pool() {
    for (Handle* const handle : handles_) free_(handle);
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// One of them, usually the first, or null.
  Handle* any(Choices& choices) const {
    const size_t i = choices.below(handles_.size() + 1);
    return i == handles_.size() ? nullptr : handles_[i];
  }
  void take(phasor_status status, Handle* handle) {
    require((status == PHASOR_OK) == (handle != nullptr), "a handle comes with success alone");
    if (handle == nullptr) return;
    handles_.push_back(handle);
    if (handles_.size() <= 4) return;
    free_(handles_.front());
    handles_.erase(handles_.begin());
  }
  void free_any(Choices& choices) {
    const size_t i = choices.below(handles_.size() + 1);
    if (i == handles_.size()) return free_(nullptr);
    free_(handles_[i]);
    handles_.erase(handles_.begin() + static_cast<ptrdiff_t>(i));
  }

 private:
  void (*free_)(Handle*);
  std::vector<Handle*> handles_;
};

/// A call, as an input names it.
enum class Call : uint8_t {
  kLoad,
  kFreeModel,
  kEncoder,
  kReplica,
  kFreeEncoder,
  kStop,
  kRequestStop,
  kFreeStop,
  kFreeResult,
  kLook,
  kTokenize,
  kPieces,
  kEncode,
  kEncodeIds,
  kEmbed,
  kEmbeddingWidth,
  kClassify,
  kMlmLogits,
  kPositionVectors,
  kObserve,
  kOthers,
};
constexpr size_t kCalls = static_cast<size_t>(Call::kOthers) + 1;

/// What a seed does: these calls, with a model of this folder; with all options, or with none.
struct Script {
  std::vector<Call> calls;
  size_t folder = 0;
  bool options = false;
};

/// What an input does, call by call.
class Caller {
 public:
  explicit Caller(std::string_view bytes) : choices_(bytes) {}

  /// Whether every call succeeded.
  bool run() {
    for (int calls = 0; !choices_.empty() && calls < 30; ++calls)
      call(static_cast<Call>(choices_.below(kCalls)));
    return !failed_;
  }

  /// The input that makes these calls: it is written by making them.
  static std::string input_of(const Script& script) {
    std::string input;
    Caller caller{Choices(input)};
    caller.folder_ = script.folder;
    caller.options_ = script.options;
    for (const Call call : script.calls)
      caller.call(static_cast<Call>(caller.choices_.below(kCalls, static_cast<size_t>(call))));
    return input;
  }

 private:
  explicit Caller(const Choices& choices) : choices_(choices) {}

  static constexpr size_t kRanker = 2;  // of the folders
  static constexpr int kWidth = 12;     // of the models
  static const std::vector<std::string>& folders() {
    static const BertFolder vectors({}), labels({"yes", "no"}), ranks({"relevant"});
    static const std::vector<std::string> all = {vectors.path(), labels.path(),   ranks.path(),
                                                 "/nowhere",     "no-such-model", ""};
    return all;
  }

  void status(phasor_status status) {
    require(status >= PHASOR_OK && status <= PHASOR_INTERNAL, "a status is one of those there are");
    require(status != PHASOR_INTERNAL && status != PHASOR_BACKEND, "no call is phasor's own fault");
    failed_ |= status != PHASOR_OK;
    if (status != PHASOR_OK) require(*phasor_error_message() != '\0', "a failure has a message");
  }

  /// Words that live as long as the call.
  const char* word(std::initializer_list<const char*> words) {
    const size_t i = choices_.below(words.size() + 2);  // usually the first
    if (i == words.size()) return nullptr;
    if (i < words.size()) return words.begin()[i];
    strings_.push_back(choices_.text());
    return strings_.back().c_str();
  }

  const phasor_texts* texts(size_t usual = 2) {
    if (choices_.rarely()) return nullptr;
    phasor_texts& texts = texts_.emplace_back();
    auto& data = pointers_.emplace_back();
    auto& sizes = numbers_.emplace_back();
    for (size_t count = choices_.below(4, usual); count > 0; --count) {
      strings_.push_back(choices_.text("a b"));
      data.push_back(strings_.back().c_str());
      sizes.push_back(static_cast<int64_t>(strings_.back().size()));
    }
    if (!data.empty() && choices_.rarely()) data.back() = nullptr;
    if (!sizes.empty() && choices_.rarely()) sizes.back() = -1;
    texts.data = choices_.rarely() ? nullptr : data.data();
    texts.sizes = choices_.coin(options_) ? sizes.data() : nullptr;
    texts.count = choices_.rarely() ? -1 : static_cast<int64_t>(data.size());
    return &texts;
  }

  const phasor_positions* positions() {
    if (choices_.coin(!options_)) return nullptr;
    phasor_positions& positions = positions_.emplace_back();
    positions.size = size_of(sizeof positions);
    positions.kind =
        word({"sinusoidal", "none", "sinusoidal:marian", "learned", "rotary:10000", "alibi"});
    if (choices_.coin()) {  // in place of a kind
      positions.table = table_.data();
      positions.table_rows = choices_.coin(true) ? 4 : choices_.below(6) - int64_t{1};
      positions.table_width = choices_.coin(true) ? 12 : choices_.below(12);
    }
    if (choices_.coin()) {  // as many as a text has tokens
      positions.ids = ids_.data();
      positions.num_ids = count_up_to(ids_.size());
    }
    if (choices_.coin(options_)) {
      auto& edits = pointers_.emplace_back();
      edits.push_back(word({"reverse", "shift=3", "scale=0.5", "shuffle=1", "zero", "noise=0.1"}));
      positions.edits = edits.data();
      positions.num_edits = choices_.rarely() ? -1 : 1;
    }
    return &positions;
  }

  size_t size_of(size_t size) { return choices_.rarely() ? choices_.byte() % size : size; }
  int64_t count_up_to(size_t most) {
    return choices_.rarely() ? -1 : static_cast<int64_t>(choices_.below(most + 1, most));
  }
  int32_t overflow() { return static_cast<int32_t>(choices_.below(8, 1)) - 1; }

  static int32_t on_hook(void* user, const phasor_hook_event* event) {
    auto& caller = *static_cast<Caller*>(user);
    if (event->changeable != nullptr && caller.choices_.coin(true)) event->changeable[0] += 1;
    if (caller.choices_.rarely() && caller.running_ != nullptr) {
      int64_t width = 0;
      caller.status(phasor_embedding_width(caller.running_, nullptr, &width));
      phasor_result* result = nullptr;
      const int32_t id = 5;
      const int64_t offsets[] = {0, 1};
      require(phasor_encode_ids(caller.running_, &id, offsets, 1, nullptr, &result) != PHASOR_OK,
              "an encoder that runs is busy");
    }
    return caller.choices_.rarely() ? 1 : 0;
  }
  static int32_t on_progress(void* user, int64_t done, int64_t total) {
    require(done >= 0 && done <= total, "progress ends with all that there is");
    return static_cast<Caller*>(user)->choices_.rarely() ? 1 : 0;
  }

  const phasor_run_options* run_options() {
    if (choices_.coin(!options_)) return nullptr;
    phasor_run_options& options = run_options_.emplace_back();
    options.size = size_of(sizeof options);
    options.positions = positions();
    options.overflow = overflow();
    if (choices_.coin(options_)) {
      cut_ = {choices_.number(), static_cast<int32_t>(choices_.below(5, 1)) - 1};
      options.cut_residuals = &cut_;
      options.num_cut_residuals = 1;
    }
    if (choices_.coin(options_)) {
      auto& record = pointers_.emplace_back();
      record.push_back(
          word({"all", "attn.hook_pattern", "blocks.0.hook_resid_post", "hook_embed"}));
      options.record = record.data();
      options.num_record = 1;
    }
    if (choices_.coin(options_)) {
      hook_ = {word({"all", "hook_pos_embed", "attn.hook_pattern", "blocks.0.hook_mlp_out"}),
               choices_.rarely() ? nullptr : on_hook, this, choices_.coin(true) ? 1 : 0};
      options.hooks = &hook_;
      options.num_hooks = 1;
    }
    if (choices_.below(4, options_ ? 0 : 1) == 0) {
      options.hidden = output_.data();
      options.hidden_size = choices_.byte(8 * kWidth);
    }
    if (choices_.below(4, 1) == 0) {
      options.token_types = types_.data();
      options.num_token_types = count_up_to(types_.size());
    }
    options.stop = stops_.any(choices_);
    return &options;
  }

  const phasor_embed_options* embed_options() {
    if (choices_.coin(!options_)) return nullptr;
    phasor_embed_options& options = embed_options_.emplace_back();
    options.size = size_of(sizeof options);
    options.pooling = word({"mean", "cls,max", "last", "weightedmean", "mean_sqrt"});
    options.prompt = word({"a: ", ""});
    if (options.prompt != nullptr && choices_.coin(options_))
      options.prompt_size = static_cast<int64_t>(std::string_view(options.prompt).size());
    options.normalize = static_cast<int32_t>(choices_.below(4, 3)) - 2;
    options.overflow = overflow();
    options.max_tokens = choices_.number();
    options.positions = positions();
    if (choices_.below(4, options_ ? 0 : 1) == 0) {
      options.output = output_.data();
      options.output_size = choices_.byte(2 * kWidth);
    }
    if (choices_.coin(options_)) options.progress = on_progress;
    options.user = this;
    options.stop = stops_.any(choices_);
    return &options;
  }

  const phasor_classify_options* classify_options() {
    if (choices_.coin(!options_)) return nullptr;
    phasor_classify_options& options = classify_options_.emplace_back();
    options.size = size_of(sizeof options);
    options.max_tokens = choices_.number();
    options.overflow = overflow();
    if (choices_.coin(options_)) options.progress = on_progress;
    options.user = this;
    options.stop = stops_.any(choices_);
    return &options;
  }

  static int32_t on_stage(void* user, const char* stage, int64_t done, int64_t total) {
    require(*stage != '\0', "a stage has a name");
    return on_progress(user, done, total);
  }

  const phasor_observe_options* observe_options() {
    if (choices_.coin(!options_)) return nullptr;
    phasor_observe_options& options = observe_options_.emplace_back();
    options.size = size_of(sizeof options);
    if (choices_.rarely()) options.run = run_options();
    if (choices_.rarely()) options.second = run_options();
    if (choices_.coin(true)) {
      auto& views = pointers_.emplace_back();
      views.push_back(word({"effect", "split", "order", "heads", "moved", "probe", "all"}));
      options.views = views.data();
      options.num_views = count_up_to(1);
    }
    options.without = choices_.rarely() ? word({"mean", "zero"}) : nullptr;
    options.max_tokens = choices_.number();
    options.top_k = choices_.rarely() ? choices_.number() : 0;
    options.masked = choices_.rarely() ? texts() : nullptr;
    options.name = word({"it"});
    options.untrained = static_cast<int32_t>(choices_.below(4, 1)) - 1;
    options.baseline = choices_.rarely() ? word({"random:2", "random:0"}) : nullptr;
    options.allowed_only = choices_.coin() ? 1 : 0;
    options.means = choices_.coin() ? 1 : 0;
    options.figures = choices_.coin(true) ? 1 : 0;
    if (choices_.coin(true)) options.progress = on_stage;
    options.user = this;
    options.stop = stops_.any(choices_);
    return &options;
  }

  /// Calls that give a handle or none.
  template <typename Handle, typename Create>
  void make(Pool<Handle>& pool, const Create& create) {
    Handle* made = nullptr;
    const phasor_status status = create(&made);
    this->status(status);
    pool.take(status, made);
  }

  /// Calls that give a result or none.
  template <typename Call>
  void result(const Call& call) {
    phasor_result* result = nullptr;
    const bool wanted = !choices_.rarely();
    const phasor_status status = call(wanted ? &result : nullptr);
    this->status(status);
    if (wanted) results_.take(status, result);
  }

  void call(Call call) {
    switch (call) {
      case Call::kLoad:
        return load();
      case Call::kFreeModel:
        return models_.free_any(choices_);
      case Call::kEncoder: {
        const phasor_encoder_options options = {size_of(sizeof options),
                                                static_cast<int32_t>(choices_.below(4, 2)) - 1,
                                                static_cast<int32_t>(choices_.below(6, 1)) - 1,
                                                static_cast<int32_t>(choices_.below(4, 0)), 0};
        const auto* const given = choices_.coin(true) ? &options : nullptr;
        const auto* const model = models_.any(choices_);
        return make(encoders_,
                    [&](auto** made) { return phasor_encoder_create(model, given, made); });
      }
      case Call::kReplica: {
        auto* const encoder = encoders_.any(choices_);
        return make(encoders_, [&](auto** made) { return phasor_encoder_replica(encoder, made); });
      }
      case Call::kFreeEncoder:
        return encoders_.free_any(choices_);
      case Call::kStop:
        return make(stops_, phasor_stop_create);
      case Call::kRequestStop:
        return phasor_stop_request(stops_.any(choices_));
      case Call::kFreeStop:
        return stops_.free_any(choices_);
      case Call::kFreeResult:
        return results_.free_any(choices_);
      case Call::kLook:
        return look_at_all(results_.any(choices_));
      case Call::kTokenize: {
        const phasor_tokenize_options options = {size_of(sizeof options),
                                                 choices_.coin() ? 1 : 0,
                                                 0,
                                                 choices_.number(),
                                                 choices_.number(),
                                                 0,
                                                 0};
        const auto* const model = models_.any(choices_);
        const auto *const first = texts(), *const second =
                                               choices_.coin(options_) ? texts() : nullptr;
        return result([&](phasor_result** out) {
          return phasor_tokenize(model, first, second, choices_.coin(options_) ? &options : nullptr,
                                 out);
        });
      }
      case Call::kPieces: {
        const auto* const model = models_.any(choices_);
        const int64_t count = count_up_to(ids_.size());
        return result([&](phasor_result** out) { return phasor_pieces(model, ids(), count, out); });
      }
      case Call::kEncode: {
        running_ = encoders_.any(choices_);
        const auto* const given = texts();
        const auto* const options = run_options();
        result([&](phasor_result** out) { return phasor_encode(running_, given, options, out); });
        running_ = nullptr;
        return;
      }
      case Call::kEncodeIds: {
        running_ = encoders_.any(choices_);
        const auto* const options = run_options();
        std::array<int64_t, 3> offsets = {0, 3, 8};
        if (choices_.below(4, 1) == 0) offsets[choices_.below(3)] = choices_.number() % 9;
        const int64_t count = count_up_to(2);
        result([&](phasor_result** out) {
          return phasor_encode_ids(running_, ids(), offsets.data(), count, options, out);
        });
        running_ = nullptr;
        return;
      }
      case Call::kEmbed: {
        auto* const encoder = encoders_.any(choices_);
        const auto* const given = texts();
        const auto* const options = embed_options();
        return result(
            [&](phasor_result** out) { return phasor_embed(encoder, given, options, out); });
      }
      case Call::kEmbeddingWidth: {
        int64_t width = 0;
        return status(phasor_embedding_width(encoders_.any(choices_), embed_options(),
                                             choices_.rarely() ? nullptr : &width));
      }
      case Call::kClassify: {
        auto* const encoder = encoders_.any(choices_);
        const bool ranks = choices_.coin(folder_ == kRanker);
        const auto* const first = texts(ranks ? 1 : 2);
        const auto* const second = choices_.coin(true) ? texts() : nullptr;
        const auto* const options = classify_options();
        return result([&](phasor_result** out) {
          return (ranks ? phasor_rank : phasor_classify)(encoder, first, second, options, out);
        });
      }
      case Call::kMlmLogits: {
        std::array<float, 2 * kWidth> hidden{};
        return status(phasor_mlm_logits(encoders_.any(choices_), hidden.data(), count_up_to(2),
                                        output_.data(), choices_.byte(2 * 56)));
      }
      case Call::kPositionVectors: {
        const auto* const model = models_.any(choices_);
        const auto* const given = positions();
        const int32_t policy = overflow();
        const int64_t count = choices_.number(4);
        // What is asked for is made, as long as memory lasts.
        const int64_t most = int64_t{1} << 12;
        return result([&](phasor_result** out) {
          return phasor_position_vectors(model, std::min(count, most), given, policy, out);
        });
      }
      case Call::kObserve: {
        auto* const first = encoders_.any(choices_);
        auto* const second = choices_.rarely() ? encoders_.any(choices_) : nullptr;
        const auto* const given = texts();
        const auto* const options = observe_options();
        return result([&](phasor_result** out) {
          return second == nullptr ? phasor_observe(first, given, options, out)
                                   : phasor_compare(first, second, given, options, out);
        });
      }
      case Call::kOthers:
        look_at(phasor_views(), 1);
        static_cast<void>(phasor_hook_name(static_cast<int32_t>(choices_.number())));
        static_cast<void>(phasor_model_info(models_.any(choices_)));
        static_cast<void>(phasor_encoder_threads(encoders_.any(choices_)));
        static_cast<void>(phasor_encoder_precision(encoders_.any(choices_)));
        static_cast<void>(phasor_encoder_kernels(encoders_.any(choices_)));
    }
  }

  void load() {
    phasor_model* model = nullptr;
    const phasor_load_options options = {size_of(sizeof options),         word({"", "fr"}),
                                         choices_.coin(options_) ? 1 : 0, 0,
                                         choices_.coin(options_) ? 1 : 0, 0};
    const size_t i = choices_.below(folders().size() + 1, folder_);
    const phasor_status status =
        phasor_model_load(i == folders().size() ? nullptr : folders()[i].c_str(),
                          choices_.coin(options_) ? &options : nullptr, &model);
    this->status(status);
    models_.take(status, model);
  }

  const int32_t* ids() {
    for (int32_t& id : ids_) id = static_cast<int32_t>(choices_.below(56));
    if (choices_.rarely()) ids_[1] = static_cast<int32_t>(choices_.number());
    return ids_.data();
  }

  /// Every byte that a result says it has.
  void look_at_all(const phasor_result* result) {
    failed_ |= result == nullptr;
    for (int64_t i = 0; i < 60; ++i) {
      const char* const name = phasor_result_array_name(result, i);
      if (name == nullptr) break;
      for (const int64_t text : {-1, 0, 1, 99}) {
        phasor_array array{};
        if (phasor_result_array(result, name, text, &array) != PHASOR_OK) continue;
        int64_t bytes = array.type == PHASOR_INT64 ? 8 : 4;
        for (int32_t axis = 0; axis < array.num_dims; ++axis) bytes *= array.shape[axis];
        look_at(array.data, static_cast<size_t>(bytes));
      }
    }
    for (const char* const name : {"pieces", "labels", "observed"}) {
      int64_t size = 0;
      const char* const text = phasor_result_string(result, name, choices_.number(), &size);
      if (text != nullptr) look_at(text, static_cast<size_t>(size) + 1);
    }
  }

  Choices choices_;
  size_t folder_ = 0;     // usually loaded
  bool options_ = false;  // are usually there
  bool failed_ = false;
  Pool<phasor_stop> stops_{phasor_stop_free};
  Pool<phasor_model> models_{phasor_model_free};
  Pool<phasor_encoder> encoders_{phasor_encoder_free};
  Pool<phasor_result> results_{phasor_result_free};
  phasor_encoder* running_ = nullptr;

  // Arguments, until the last call has ended.
  std::list<std::string> strings_;
  std::list<std::vector<const char*>> pointers_;
  std::list<std::vector<int64_t>> numbers_;
  std::list<phasor_texts> texts_;
  std::list<phasor_positions> positions_;
  std::list<phasor_run_options> run_options_;
  std::list<phasor_embed_options> embed_options_;
  std::list<phasor_classify_options> classify_options_;
  std::list<phasor_observe_options> observe_options_;
  phasor_residual_cut cut_{};
  phasor_hook hook_{};
  std::array<int32_t, 8> ids_{}, types_{};
  std::array<float, 48> table_{};
  std::array<float, 1024> output_{};
};

}  // namespace

Fuzzer capi_fuzzer() {
  using enum Call;
  return {.name = "capi",
          .run = [](std::string_view bytes) { return Caller(bytes).run(); },
          .seeds = []() -> std::vector<std::string> {
            std::vector<std::string> inputs;
            for (Script script : std::initializer_list<Script>{
                     {{kLoad, kTokenize, kLook, kPieces, kLook, kPositionVectors, kLook, kOthers}},
                     {{kLoad, kEncoder, kFreeModel, kEncode, kFreeEncoder, kLook}},
                     {{kLoad, kEncoder, kReplica, kFreeEncoder, kEncodeIds, kLook, kFreeResult}},
                     {{kLoad, kEncoder, kEmbeddingWidth, kEmbed, kEmbed, kFreeResult, kLook}},
                     {{kLoad, kEncoder, kClassify, kLook, kStop, kFreeStop}, 1},
                     {{kLoad, kEncoder, kClassify, kLook}, 2},
                     {{kLoad, kEncoder, kObserve, kLook}}}) {
              for (const bool options : {false, true}) {
                script.options = options;
                inputs.push_back(Caller::input_of(script));
              }
            }
            return inputs;
          },
          .words = words(R"(mean cls,max hook_embed [MASK] a\sb \xff)"),
          .refused = []() -> std::vector<std::string> {
            return {// A stop was requested before the texts were embedded.
                    Caller::input_of({{kLoad, kEncoder, kStop, kRequestStop, kEmbed}, 0, true}),
                    // There is no head that predicts tokens.
                    Caller::input_of({{kLoad, kEncoder, kMlmLogits}})};
          }};
}

}  // namespace phasor::fuzz
