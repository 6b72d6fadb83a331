// The engine's allocations fail, one at a time (the first 100 of each operation, and fifty of the
// others): the caller gets std::bad_alloc or an error of phasor's, nothing leaks, and the same
// object then gives the same bits. A program of its own, because it replaces the allocator.
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <ranges>

#include "phasor/phasor_c.h"
#include "tests/support/bert_folder.h"
#include "tests/support/encoder_cases.h"

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
std::atomic<int64_t> until_failure = kNever;  // allocations
std::atomic<bool> goes_on = false;            // all later ones fail too
std::atomic<int64_t> blocks = 0;              // allocated and not freed
[[maybe_unused]] std::atomic<int64_t> threads_to_refuse = 0;

/// Not in libraries that end the process without memory, which callers cannot change: oneDNN writes
/// to what it did not get, SentencePiece's protobuf frees it, libgomp and the dynamic linker exit.
bool may_fail() {
  std::array<void*, 64> frames{};
  const int depth = backtrace(frames.data(), frames.size());
  return std::none_of(frames.begin(), frames.begin() + depth, [](const void* frame) {
    Dl_info info;
    if (dladdr(frame, &info) == 0 || info.dli_fname == nullptr) return false;
    constexpr std::array<std::string_view, 6> kUnsafe = {
        "libdnnl", "libgomp", "libomp", "ld-linux", "libsentencepiece", "libprotobuf"};
    return std::ranges::any_of(kUnsafe, [file = std::string_view(info.dli_fname)](auto name) {
      return file.find(name) != file.npos;
    });
  });
}

constexpr int64_t kLater = 20;  // allocations; to find out takes time
thread_local bool is_deciding = false;

bool fails() {
  if (is_deciding) return false;
  const int64_t left = until_failure.fetch_sub(1);
  if (left > 0 || (left < 0 && !goes_on)) return false;
  is_deciding = true;
  const bool failing = may_fail();
  is_deciding = false;
  if (!failing) until_failure = kLater;
  return failing;
}

void* new_block(size_t size, size_t alignment = alignof(std::max_align_t)) noexcept {
  void* block = nullptr;
  if (fails() || posix_memalign(&block, alignment, size) != 0) return nullptr;
  ++blocks;
  return block;
}
void* must(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void delete_block(void* block) {
  if (block == nullptr) return;
  --blocks;
  std::free(block);
}

}  // namespace

// The other forms of new and delete call these.
using Alignment = std::align_val_t;
void* operator new(size_t size) { return must(new_block(size)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return new_block(size); }
void* operator new(size_t size, Alignment to) { return must(new_block(size, size_t(to))); }
void operator delete(void* block) noexcept { delete_block(block); }
void operator delete(void* block, size_t) noexcept { delete_block(block); }
void operator delete(void* block, Alignment) noexcept { delete_block(block); }
void operator delete(void* block, size_t, Alignment) noexcept { delete_block(block); }

#if defined(__GLIBC__) && !HAS_ADDRESS_SANITIZER
// What the engine takes pages and threads from.
extern "C" {
void* __libc_memalign(size_t alignment, size_t size);
void* aligned_alloc(size_t alignment, size_t size) {
  return fails() ? nullptr : __libc_memalign(alignment, size);
}
void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) {
  if (!fails())
    return reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, file, offset));
  errno = ENOMEM;
  return MAP_FAILED;
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  if (threads_to_refuse > 0) {
    --threads_to_refuse;
    return EAGAIN;
  }
  static const auto real =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, start, argument);
}
}
#endif

namespace phasor {
namespace {

/// What a use of an object gave, as bytes.
class Bytes {
 public:
  template <typename T>
  Bytes& add(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      bytes_ += std::string_view(value);
    } else if constexpr (std::is_arithmetic_v<std::ranges::range_value_t<T>>) {
      const auto bytes = std::as_bytes(std::span(value));
      bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    } else {
      for (const auto& part : value) add(part);
    }
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

using Use = std::function<std::string()>;
/// Makes the object of an operation, and what uses it.
using Make = std::function<Use()>;

/// Lets the allocation number `n` of a use fail.
class Failure {
 public:
  Failure(int64_t n, bool all_later) {
    goes_on = all_later;
    until_failure = n;
  }
  ~Failure() { until_failure = kNever; }
};

int64_t count_allocations(const Use& use) {
  Failure none(kNever - 1, false);
  use();
  return kNever - 1 - until_failure;
}

constexpr int64_t kAllOfTheFirst = HAS_ADDRESS_SANITIZER ? 20 : 100;
constexpr int64_t kOfTheRest = HAS_ADDRESS_SANITIZER ? 10 : 50;

/// Uses the object while an allocation fails.
void expect_ends_well(const Use& use, const std::string& expected, int64_t n, bool all_later) {
  std::string got;
  std::exception_ptr thrown;
  {
    const Failure failure(n, all_later);
    try {
      got = use();
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  try {
    if (thrown) std::rethrow_exception(thrown);
    EXPECT_TRUE(got == expected) << "another result where allocation " << n << " failed";
  } catch (const std::bad_alloc&) {
  } catch (const Error& error) {
    const std::string what = error.what();
    const bool named = what.ends_with(std::strerror(ENOMEM)) || what.starts_with("out of memory");
    EXPECT_TRUE(named) << "allocation " << n << ": " << error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "allocation " << n << ": " << typeid(error).name() << ": " << error.what();
  }
}

/// Uses what `make` makes while each allocation fails, alone and with all later ones; then once
/// more.
void expect_survives(const std::string& what, const Make& make) {
  SCOPED_TRACE(what);
  const std::string expected = make()();
  for (const bool all_later : {false, true}) {
    const auto fail = [&](int64_t n) {
      const Use use = make();
      expect_ends_well(use, expected, n, all_later);
      EXPECT_TRUE(use() == expected) << "another result after allocation " << n << " failed";
    };
    const int64_t total = count_allocations(make());
    const int64_t step = std::max<int64_t>(1, (total - kAllOfTheFirst) / kOfTheRest);
    for (int64_t n = 0; n < total; n += n < kAllOfTheFirst ? 1 : step) {
      bool leaks = true;
      // What a cache keeps is allocated once, what leaks each time.
      for (int attempt = 0; attempt < 3 && leaks; ++attempt) {
        const int64_t before = blocks;
        fail(n);
        leaks = blocks > before;
      }
      EXPECT_FALSE(leaks) << "leaks where allocation " << n << " fails";
    }
  }
}

/// The same of a use that makes its objects.
void expect_survives(const std::string& what, const Use& use) {
  expect_survives(what, Make([&] { return use; }));
}

/// The same of `use` of an encoder.
void expect_survives(const std::string& what, const std::shared_ptr<const Model>& model,
                     const EncoderOptions& options,
                     const std::function<std::string(Encoder&)>& use) {
  expect_survives(what, [&]() -> Use {
    const auto encoder = std::make_shared<Encoder>(model, options);
    return [&use, encoder] { return use(*encoder); };
  });
}

const std::vector<std::string> kTexts = {"abc de f", "de, abc", "q", "a b c d e f g h i j"};

std::string bytes_of(const Model& model) {
  Bytes bytes;
  for (const auto& [name, tensor] : model.parameters()) bytes.add(name).add(tensor.to_float());
  if (model.has_tokenizer()) {
    for (const std::string& text : kTexts) {
      const Tokens tokens = model.tokenizer().encode(text);
      bytes.add(tokens.ids).add(tokens.pieces);
    }
  }
  return bytes.add(model.notes()).add(model.has_sentence()).add(model.unused_keys()).take();
}

TEST(AllocationsTest, Loading) {
  const BertFolder bert({"bad", "good"});
  for (const bool copy : {false, true})
    expect_survives(copy ? "load, copied" : "load, mapped",
                    [&] { return bytes_of(*Model::load(bert.path(), {.copy = copy})); });
  expect_survives("load a bundled model",
                  [&] { return bytes_of(*Model::load(bundled_model("sinusoidal"))); });
}

TEST(AllocationsTest, LoadingWhatIsNoModel) {
  const TempFolder outer, no_weights;
  outer.write("a/b/config.json", R"({"model_type": "bert"})");
  no_weights.write("config.json", small_config_json().dump());
  no_weights.write("onnx/model.onnx", "\x08\x07");
  for (const fs::path& given : {outer.path(), no_weights.path(), fs::path("nothing")}) {
    expect_survives("load " + given.string(), [&]() -> std::string {
      try {
        Model::load(given);
      } catch (const ModelError& error) {
        if (!std::string_view(error.what()).ends_with(std::strerror(ENOMEM))) return error.what();
        throw;
      }
      return "loaded";
    });
  }
}

TEST(AllocationsTest, Encoders) {
  const auto model = drawn_model(65);
  const std::vector<TokenIds> batch = {random_ids(*model, 5, 1), random_ids(*model, 9, 2),
                                       random_ids(*model, 3, 3), random_ids(*model, 4, 4)};
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16, Precision::kInt8}) {
    for (const int threads : {1, 3}) {
      const auto run = [&](Encoder& encoder) {
        const Encoding encoding = encoder.encode_ids(batch);
        return Bytes().add(encoding.hidden).add(encoding.positions).take();
      };
      const EncoderOptions options = {.threads = threads, .precision = precision};
      const auto how = fmt::format("{}, threads {}", to_string(precision), threads);
      expect_survives("construct " + how, [&] {
        Encoder encoder(model, options);
        return run(encoder);
      });
      expect_survives("encode " + how, model, options, run);
    }
  }
}

/// Changes what it sees.
struct Halving : Observer {
  bool wants(Hook, int64_t) const override { return true; }
  void observe(const HookEvent& event) override { sums.add(event.values); }
  bool changes(Hook hook, int64_t) const override {
    return hook == Hook::kAttnScores || hook == Hook::kZ;
  }
  void change(const HookEvent&, std::span<float> values) override {
    for (float& value : values) value /= 2;
  }
  Bytes sums;
};

TEST(AllocationsTest, Observers) {
  const auto model = random_model(sinusoidal_config(NormOrder::kPostNorm), 7,
                                  {.token_types = 2, .mlm_head = true});
  const std::vector<TokenIds> one = {random_ids(*model, 6, 1)};
  const std::vector<TokenIds> three = {random_ids(*model, 6, 1), random_ids(*model, 3, 2),
                                       random_ids(*model, 4, 3)};
  const auto expect = [&](const std::string& what, int threads, const auto& use) {
    expect_survives(what, model, {.threads = threads}, use);
  };
  expect("observer", 1, [&](Encoder& encoder) {
    Halving halving;
    const Encoding encoding = encoder.encode_ids(one, {.observer = &halving});
    return halving.sums.add(encoding.hidden).take();
  });
  for (const int threads : {1, 3}) {
    expect("trace, threads " + std::to_string(threads), threads, [&](Encoder& encoder) {
      Trace trace = Trace::everything();
      encoder.encode_ids(three, {.observer = &trace});
      Bytes bytes;
      for (int64_t i = 0; i < 3; ++i) bytes.add(trace.hidden_state(2, i).values);
      return bytes.take();
    });
  }
  expect("positions and cuts", 1, [&](Encoder& encoder) {
    const Encoding encoding =
        encoder.encode_ids(one, {.positions = Positions::named("alibi", {}).edited("reverse"),
                                 .cut_residuals = {{.layer = 1}}});
    return Bytes().add(encoding.hidden).take();
  });
  expect("mlm_logits", 3, [&](Encoder& encoder) {
    const Encoding encoding = encoder.encode_ids(one);
    return Bytes().add(encoder.mlm_logits(encoding.hidden)).take();
  });
}

/// A call of the C interface, which fails as the others throw.
void check(phasor_status status) {
  if (status == PHASOR_OUT_OF_MEMORY) throw std::bad_alloc();
  if (status != PHASOR_OK) throw ModelError(phasor_error_message());
}

/// What a result holds.
std::string bytes_of(const phasor_result* result) {
  Bytes bytes;
  for (int64_t i = 0; phasor_result_array_name(result, i) != nullptr; ++i) {
    const std::string name = phasor_result_array_name(result, i);
    phasor_array array;
    phasor_status status = phasor_result_array(result, name.c_str(), -1, &array);
    if (status == PHASOR_NOT_FOUND) status = phasor_result_array(result, name.c_str(), 0, &array);
    check(status);
    size_t size = array.type == PHASOR_INT64 ? 8 : 4;
    for (int32_t d = 0; d < array.num_dims; ++d) size *= array.shape[d];
    bytes.add(name).add(std::string_view(static_cast<const char*>(array.data), size));
  }
  return bytes.take();
}

template <typename Call>
std::string result_of(Call call) {
  phasor_result* result = nullptr;
  check(call(&result));
  const std::shared_ptr<phasor_result> owner(result, phasor_result_free);
  return bytes_of(result);
}

TEST(AllocationsTest, CallsOfTheCInterfaceWithTexts) {
  const BertFolder bert({"relevant"});
  const std::string path = bert.path();
  const auto load = [&] {
    phasor_model* model = nullptr;
    check(phasor_model_load(path.c_str(), nullptr, &model));
    return std::shared_ptr<phasor_model>(model, phasor_model_free);
  };
  const auto model = load();
  const auto owned = [](phasor_encoder* encoder) {
    return std::shared_ptr<phasor_encoder>(encoder, phasor_encoder_free);
  };
  const std::vector<const char*> data = {"abc de f", "de, abc", "q", "a b c d e f g h i j"};
  const phasor_texts texts = {data.data(), nullptr, 4}, query = {data.data(), nullptr, 1};
  expect_survives("load", [&] { return std::to_string(load() != nullptr); });
  expect_survives("info", [&]() -> Use {
    return [loaded = load()] {
      const char* const info = phasor_model_info(loaded.get());
      return info == nullptr ? throw std::bad_alloc() : std::string(info);
    };
  });
  expect_survives("tokenize", [&] {
    return result_of(
        [&](auto to) { return phasor_tokenize(model.get(), &texts, &texts, nullptr, to); });
  });
  const char* const record[] = {"pattern"};
  const phasor_hook_function pass = [](void*, const phasor_hook_event*) -> int32_t { return 0; };
  const phasor_hook hook = {"attn.hook_z", pass, nullptr, 1};
  phasor_run_options run = {};
  run.size = sizeof run;
  run.record = record;
  run.num_record = 1;
  run.hooks = &hook;
  run.num_hooks = 1;
  const char* const pooled[] = {"pooling", "cls,max", "prompt", "query ", nullptr};
  const char* const short_ones[] = {"max_tokens", "5", "overflow", "window", nullptr};
  phasor_text_options whole = {}, windows = {};
  whole.size = windows.size = sizeof whole;
  whole.settings = pooled;
  windows.settings = short_ones;
  using Call = std::function<phasor_status(phasor_encoder*, phasor_result**)>;
  const std::pair<const char*, Call> calls[] = {
      {"encode", [&](auto* with, auto** to) { return phasor_encode(with, &texts, &run, to); }},
      {"embed", [&](auto* with, auto** to) { return phasor_embed(with, &texts, &whole, to); }},
      {"windows", [&](auto* with, auto** to) { return phasor_embed(with, &texts, &windows, to); }},
      {"classify",
       [&](auto* with, auto** to) { return phasor_classify(with, &texts, &texts, nullptr, to); }},
      {"rank",
       [&](auto* with, auto** to) { return phasor_rank(with, &query, &texts, nullptr, to); }}};
  for (const int32_t threads : {1, 3}) {
    const auto create = [&] {
      phasor_encoder_options options = {};
      options.size = sizeof options;
      options.threads = threads;
      phasor_encoder* encoder = nullptr;
      check(phasor_encoder_create(model.get(), &options, &encoder));
      return owned(encoder);
    };
    expect_survives("create", [&] { return std::string(phasor_encoder_info(create().get())); });
    for (const auto& call : calls) {
      expect_survives(fmt::format("{}, threads {}", call.first, threads), [&]() -> Use {
        return [&, encoder = create()] {
          return result_of([&](auto to) { return call.second(encoder.get(), to); });
        };
      });
    }
  }
}

#if defined(__GLIBC__) && !HAS_ADDRESS_SANITIZER
TEST(AllocationsTest, WhereTheSystemRefusesThreadsTheOthersDoTheirWork) {
  const auto model = drawn_model(65);
  const std::vector<TokenIds> batch(12, random_ids(*model, 9, 2));
  Encoder alone(model, {.threads = 1});
  const Encoding expected = alone.encode_ids(batch);
  for (const int refused : {1, 2, 100}) {
    Encoder encoder(model, {.threads = 4});
    for (int run = 0; run < 2; ++run) {
      threads_to_refuse = refused;
      const Encoding encoding = encoder.encode_ids(batch);
      threads_to_refuse = 0;
      expect_same_bits(encoding.hidden, expected.hidden, "threads refused");
    }
  }
}
#endif

}  // namespace
}  // namespace phasor
