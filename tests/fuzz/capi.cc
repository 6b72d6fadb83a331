// The C interface: its functions in any order, with any arguments that C can pass, null among them.
// Handles are those that functions gave and nobody has freed.
#include "phasor/fields.h"
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

/// What an input may call.
const std::vector<std::string> kCalls = words(R"(load free_model encoder free_encoder stop
request_stop free_stop free_result look tokenize pieces encode encode_ids embed classify mlm_logits
position_vectors observe others label)");

constexpr size_t kRanker = 2, kBge = 3, kLabeler = 4;  // of the folders of models

/// A BERT that makes the three kinds of BGE-M3's vectors.
std::string bge_path() {
  static const BertFolder bge({});
  const auto write = [&](const char* name, int64_t width) {
    const std::vector<float> weight(12 * width, 0.25F), bias(width, 0.5F);
    bge.write(name, torch_bytes({{"weight", {width, 12}, "F32", float_bytes(weight)},
                                 {"bias", {width}, "F32", float_bytes(bias)}}));
  };
  write("sparse_linear.pt", 1);
  write("colbert_linear.pt", 3);
  return bge.path();
}

/// What an input does, call by call.
class Caller {
 public:
  explicit Caller(std::string_view bytes) : choices_(bytes) {}

  /// Whether every call succeeded.
  bool run() {
    for (int calls = 0; !choices_.empty() && calls < 30; ++calls)
      call(kCalls[choices_.below(kCalls.size())]);
    return !failed_;
  }

  /// The input that makes these calls, usually with a model of this folder, and with all options or
  /// none: it is written by making them.
  static std::string input_of(std::string_view calls, size_t folder = 0, bool options = false) {
    std::string input;
    Caller caller{Choices(input)};
    caller.folder_ = folder;
    caller.options_ = options;
    for (const std::string& call : words(calls)) {
      const auto place = std::ranges::find(kCalls, call);
      caller.choices_.below(kCalls.size(), static_cast<size_t>(place - kCalls.begin()));
      caller.call(call);
    }
    return input;
  }

 private:
  explicit Caller(const Choices& choices) : choices_(choices) {}

  static constexpr int kWidth = 12;  // of the models
  static constexpr int64_t kMostVectors = 1 << 12;
  static const std::vector<std::string>& folders() {
    static const BertFolder vectors({}), labels({"yes", "no"}), ranks({"relevant"}),
        spans({"B-x", "I-x", "O"}, 1, true);
    static const std::vector<std::string> all = {
        vectors.path(), labels.path(), ranks.path(),    bge_path(),
        spans.path(),   "/nowhere",    "no-such-model", ""};
    return all;
  }

  void status(phasor_status status) {
    require(status >= PHASOR_OK && status <= PHASOR_INTERNAL, "a status is one of those there are");
    require(status != PHASOR_INTERNAL && status != PHASOR_BACKEND, "no call is phasor's own fault");
    failed_ |= status != PHASOR_OK;
    if (status != PHASOR_OK) require(*phasor_error_message() != '\0', "a failure has a message");
  }

  /// An argument that lives until the last call has ended.
  template <typename T>
  T& keep(T value) {
    const auto kept = std::make_shared<T>(std::move(value));
    kept_.push_back(kept);
    return *kept;
  }
  template <typename Options>
  Options& options() {
    Options& options = keep<Options>({});
    options.size = choices_.rarely() ? choices_.byte() % sizeof options : sizeof options;
    return options;
  }

  const char* word(std::initializer_list<const char*> words) {
    const size_t i = choices_.below(words.size() + 2);  // usually the first
    if (i == words.size()) return nullptr;
    if (i < words.size()) return words.begin()[i];
    return keep(choices_.text()).c_str();
  }
  /// A list of one word.
  const char* const* list(std::initializer_list<const char*> words) { return &keep(word(words)); }

  const phasor_texts* texts(size_t usual = 2) {
    if (choices_.rarely()) return nullptr;
    auto& texts = keep<phasor_texts>({});
    auto& data = keep<std::vector<const char*>>({});
    auto& sizes = keep<std::vector<int64_t>>({});
    for (size_t count = choices_.below(4, usual); count > 0; --count) {
      const std::string& text = keep(choices_.text("a b"));
      data.push_back(text.c_str());
      sizes.push_back(static_cast<int64_t>(text.size()));
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
    auto& positions = this->options<phasor_positions>();
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
      positions.edits = list({"reverse", "shift=3", "scale=0.5", "shuffle=1", "zero", "noise=0.1"});
      positions.num_edits = choices_.rarely() ? -1 : 1;
    }
    return &positions;
  }

  int64_t count_up_to(size_t most) {
    return choices_.rarely() ? -1 : static_cast<int64_t>(choices_.below(most + 1, most));
  }
  const char* overflow() {
    return choices_.coin() ? word({"truncate", "window", "clamp", "interpolate", "error"})
                           : nullptr;
  }

  static int32_t on_hook(void* user, const phasor_hook_event* event) {
    auto& caller = *static_cast<Caller*>(user);
    if (event->changeable != nullptr && caller.choices_.coin(true)) event->changeable[0] += 1;
    if (caller.choices_.rarely() && caller.running_ != nullptr) {
      phasor_result* result = nullptr;
      const int32_t id = 5;
      const int64_t offsets[] = {0, 1};
      caller.status(phasor_encode_ids(caller.running_, &id, offsets, 1, nullptr, &result));
      phasor_result_free(result);
    }
    return caller.choices_.rarely() ? 1 : 0;
  }
  static int32_t on_progress(void* user, int64_t done, int64_t total) {
    require(done >= 0 && done <= total, "progress ends with all that there is");
    return static_cast<Caller*>(user)->choices_.rarely() ? 1 : 0;
  }

  const phasor_run_options* run_options() {
    if (choices_.coin(!options_)) return nullptr;
    auto& options = this->options<phasor_run_options>();
    options.positions = positions();
    options.overflow = overflow();
    if (choices_.coin(options_)) {
      options.cut_residuals =
          &keep<phasor_residual_cut>({choices_.number(), word({"both", "attn", "mlp"})});
      options.num_cut_residuals = 1;
    }
    if (choices_.coin(options_)) {
      options.record = list({"all", "attn.hook_pattern", "blocks.0.hook_resid_post", "hook_embed"});
      options.num_record = 1;
    }
    if (choices_.coin(options_)) {
      options.hooks = &keep<phasor_hook>(
          {word({"all", "hook_pos_embed", "attn.hook_pattern", "blocks.0.hook_mlp_out"}),
           choices_.rarely() ? nullptr : on_hook, this, choices_.coin(true) ? 1 : 0});
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

  /// A value that the field may have, or nearly.
  const char* value_of(const Field& field) {
    if (field.values != nullptr) {
      if (field.type == FieldType::kNames && choices_.coin(true))
        return keep(fmt::format("{}", fmt::join(field.values(), ","))).c_str();
      return field.values()[choices_.below(field.values().size())].data();
    }
    if (field.type == FieldType::kCount) return word({"7", "4", "3000000000"});
    if (field.type == FieldType::kText) return word({"query", "a: ", ""});
    return word({"true", "false"});
  }

  /// Settings that some calls use, and others refuse.
  const char* const* settings() {
    auto& list = keep<std::vector<const char*>>({});
    for (const Field& field : fields()) {
      const bool usually = field.name == "kinds" && folder_ == kBge;
      if (field.read != nullptr && choices_.below(8, usually ? 0 : 1) == 0)
        list.insert(list.end(), {field.name.data(), value_of(field)});
    }
    if (choices_.rarely()) list.insert(list.end(), {word({"output", "max_token"}), word({"1"})});
    list.push_back(nullptr);
    return list.data();
  }

  const phasor_text_options* text_options(bool embeds = false) {
    if (choices_.coin(!options_)) return nullptr;
    auto& options = this->options<phasor_text_options>();
    options.settings = settings();
    if (embeds) {
      options.positions = positions();
      if (choices_.below(4, options_ ? 0 : 1) == 0) {
        options.output = output_.data();
        options.output_size = choices_.byte(2 * kWidth);
      }
    }
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
    auto& options = this->options<phasor_observe_options>();
    if (choices_.rarely()) options.run = run_options();
    if (choices_.rarely()) options.second = run_options();
    if (choices_.coin(true)) {
      options.views = list({"effect", "split", "order", "heads", "moved", "probe", "all"});
      options.num_views = count_up_to(1);
    }
    options.without = choices_.rarely() ? word({"mean", "zero"}) : nullptr;
    options.max_tokens = choices_.number();
    options.top_k = choices_.rarely() ? choices_.number() : 0;
    options.masked = choices_.rarely() ? texts() : nullptr;
    options.name = word({"it"});
    options.baseline = choices_.rarely() ? word({"random:2", "random:0"}) : nullptr;
    options.allowed_only = choices_.coin() ? 1 : 0;
    options.means = choices_.coin() ? 1 : 0;
    options.figures = choices_.coin(true) ? 1 : 0;
    if (choices_.coin(true)) options.progress = on_stage;
    options.user = this;
    options.stop = stops_.any(choices_);
    return &options;
  }

  const phasor_load_options* load_options() {
    if (choices_.coin(!options_)) return nullptr;
    auto& options = this->options<phasor_load_options>();
    options.language = word({"", "fr"});
    options.copy = choices_.coin(options_) ? 1 : 0;
    options.follow_links = choices_.coin(options_) ? 1 : 0;
    return &options;
  }

  const phasor_encoder_options* encoder_options() {
    if (choices_.coin()) return nullptr;
    auto& options = this->options<phasor_encoder_options>();
    options.threads = static_cast<int32_t>(choices_.below(4, 2)) - 1;
    options.precision = word({"f32", "bf16", "int8", "auto"});
    options.kernels = word({"auto", "own", "onednn"});
    return &options;
  }

  const phasor_tokenize_options* tokenize_options() {
    if (choices_.coin(!options_)) return nullptr;
    auto& options = this->options<phasor_tokenize_options>();
    options.parse_special = choices_.coin() ? 1 : 0;
    options.max_tokens = choices_.number();
    options.prompt_bytes = choices_.number();
    options.offset_unit = choices_.coin() ? word({"characters", "bytes"}) : nullptr;
    return &options;
  }

  /// Calls `function`, which gives a handle or none. The arguments are a tuple between braces,
  /// whose choices are made in their order.
  template <typename Handle, typename... Arguments>
  void make(Pool<Handle>& pool, const auto& function, const std::tuple<Arguments...>& arguments) {
    Handle* made = nullptr;
    const bool wanted = !choices_.rarely();
    const phasor_status status = std::apply(
        [&](auto... all) { return function(all..., wanted ? &made : nullptr); }, arguments);
    this->status(status);
    if (wanted) pool.take(status, made);
  }

  void call(std::string_view call) {
    if (call == "load") make(models_, phasor_model_load, std::tuple{folder(), load_options()});
    if (call == "free_model") models_.free_any(choices_);
    if (call == "encoder")
      make(encoders_, phasor_encoder_create, std::tuple{model(), encoder_options()});
    if (call == "free_encoder") encoders_.free_any(choices_);
    if (call == "stop") make(stops_, phasor_stop_create, std::tuple{});
    if (call == "request_stop") phasor_stop_request(stops_.any(choices_));
    if (call == "free_stop") stops_.free_any(choices_);
    if (call == "free_result") results_.free_any(choices_);
    if (call == "look") look_at_all(results_.any(choices_));
    if (call == "tokenize") {
      make(results_, phasor_tokenize,
           std::tuple{model(), texts(), choices_.coin(options_) ? texts() : nullptr,
                      tokenize_options()});
    }
    if (call == "pieces")
      make(results_, phasor_pieces, std::tuple{model(), ids(), count_up_to(ids_.size())});
    if (call == "encode") {
      running_ = encoder();
      make(results_, phasor_encode, std::tuple{running_, texts(), run_options()});
    }
    if (call == "encode_ids") {
      running_ = encoder();
      make(results_, phasor_encode_ids,
           std::tuple{running_, ids(), offsets(), count_up_to(2), run_options()});
    }
    running_ = nullptr;
    if (call == "embed")
      make(results_, phasor_embed, std::tuple{encoder(), texts(), text_options(true)});
    if (call == "classify") {
      const bool ranks = choices_.coin(folder_ == kRanker);
      make(results_, ranks ? phasor_rank : phasor_classify,
           std::tuple{encoder(), texts(ranks ? 1 : 2), choices_.coin(true) ? texts() : nullptr,
                      text_options()});
    }
    if (call == "mlm_logits") {
      std::array<float, 2 * kWidth> hidden{};
      status(phasor_mlm_logits(encoder(), hidden.data(), count_up_to(2), output_.data(),
                               choices_.byte(2 * 56)));
    }
    if (call == "position_vectors") {  // what is asked for is made, as long as memory lasts
      make(
          results_, phasor_position_vectors,
          std::tuple{model(), std::min(choices_.number(4), kMostVectors), positions(), overflow()});
    }
    if (call == "observe") {
      if (choices_.rarely()) {
        make(results_, phasor_compare,
             std::tuple{encoder(), encoder(), texts(), observe_options()});
      } else {
        make(results_, phasor_observe, std::tuple{encoder(), texts(), observe_options()});
      }
    }
    if (call == "label")
      make(results_, phasor_label, std::tuple{encoder(), texts(), text_options()});
    if (call == "others") {
      for (const char* const what : {"views", "hooks", "version"}) look_at(phasor_info(what), 1);
      static_cast<void>(phasor_info(word({"backend_version"})));
      static_cast<void>(phasor_model_info(model()));
      static_cast<void>(phasor_encoder_info(encoder()));
    }
  }

  phasor_model* model() { return models_.any(choices_); }
  phasor_encoder* encoder() { return encoders_.any(choices_); }
  const char* folder() {
    const size_t i = choices_.below(folders().size() + 1, folder_);
    return i == folders().size() ? nullptr : folders()[i].c_str();
  }

  const int64_t* offsets() {
    auto& offsets = keep<std::array<int64_t, 3>>({0, 3, 8});
    if (choices_.below(4, 1) == 0) offsets[choices_.below(3)] = choices_.number() % 9;
    return offsets.data();
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

  // Arguments.
  std::vector<std::shared_ptr<void>> kept_;
  std::array<int32_t, 8> ids_{}, types_{};
  std::array<float, 48> table_{};
  std::array<float, 1024> output_{};
};

}  // namespace

Fuzzer capi_fuzzer() {
  return {
      .name = "capi",
      .run = [](std::string_view bytes) { return Caller(bytes).run(); },
      .seeds = []() -> std::vector<std::string> {
        std::vector<std::string> inputs;
        for (const bool options : {false, true}) {
          for (const char* const calls :
               {"load tokenize look pieces look position_vectors look others",
                "load encoder free_model encode free_encoder look",
                "load encoder encode_ids free_encoder look free_result",
                "load encoder embed embed free_result look", "load encoder observe look"})
            inputs.push_back(Caller::input_of(calls, 0, options));
          inputs.push_back(
              Caller::input_of("load encoder classify look stop free_stop", 1, options));
          inputs.push_back(Caller::input_of("load encoder classify look", kRanker, options));
          inputs.push_back(Caller::input_of("load encoder embed look embed look", kBge, options));
          inputs.push_back(Caller::input_of("load encoder label look", kLabeler, options));
        }
        return inputs;
      },
      .words = words(R"(mean cls,max hook_embed [MASK] a\sb \xff)"),
      .refused = {// A stop was requested before the texts were embedded.
                  Caller::input_of("load encoder stop request_stop embed", 0, true),
                  // There is no head that predicts tokens.
                  Caller::input_of("load encoder mlm_logits")}};
}

}  // namespace phasor::fuzz
