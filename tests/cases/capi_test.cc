// The C interface, in the shared library, answers every case as the library does, with all arrays.
#include "phasor/phasor_c.h"
#include "tests/support/cases.h"

namespace phasor {
namespace {

template <typename T>
using Held = std::unique_ptr<T, void (*)(T*)>;

/// Of strings that live on.
class BorrowedTexts {
 public:
  explicit BorrowedTexts(const std::vector<std::string>& strings) {
    for (const std::string& each : strings) texts_.push_back(each.c_str());
  }
  phasor_texts all() const { return {texts_.data(), nullptr, std::ssize(texts_)}; }

 private:
  std::vector<const char*> texts_;
};

template <typename T>
json values_of(const phasor_array& array) {
  int64_t count = 1;
  for (int32_t d = 0; d < array.num_dims; ++d) count *= array.shape[d];
  return std::span(static_cast<const T*>(array.data), count);
}

Answer read_result(const phasor_result* result) {
  Answer answer;
  phasor_array array;
  for (int64_t i = 0; const char* name = phasor_result_array_name(result, i); ++i) {
    EXPECT_EQ(phasor_result_array(result, name, -1, &array), PHASOR_OK) << name;
    answer.arrays[name] = array.type == PHASOR_FLOAT32 ? values_of<float>(array)
                          : array.type == PHASOR_INT32 ? values_of<int32_t>(array)
                                                       : values_of<int64_t>(array);
  }
  for (int64_t i = 0; const char* label = phasor_result_string(result, "labels", i, nullptr); ++i)
    answer.add("labels", label);
  return answer;
}

class CapiTest : public testing::Test {
 protected:
  phasor_encoder* encoder(const std::string& model) {
    const auto found = encoders_.find(model);
    if (found != encoders_.end()) return found->second.get();
    phasor_model* loaded = nullptr;
    phasor_encoder* made = nullptr;
    EXPECT_EQ(phasor_model_load(models_.folders().at(model).c_str(), nullptr, &loaded), PHASOR_OK);
    EXPECT_EQ(phasor_encoder_create(loaded, nullptr, &made), PHASOR_OK);
    phasor_model_free(loaded);
    return encoders_.emplace(model, Held<phasor_encoder>(made, phasor_encoder_free))
        .first->second.get();
  }

  Answer answer(const Case& one) {
    std::vector<std::string> first, second;
    for (const json& text : one.texts) {
      first.push_back(text.is_array() ? text[0] : text);
      if (text.is_array()) second.push_back(text[1]);
    }
    if (one.call == "rank") {  // the query, and the documents
      second.assign(first.begin() + 1, first.end());
      first.resize(1);
    }
    const BorrowedTexts a(first), b(second);
    const phasor_texts texts = a.all(), others = b.all();
    std::vector<const char*> settings;
    phasor_positions positions{};
    phasor_run_options run{};
    phasor_text_options how{};
    positions.size = sizeof positions;
    run.size = sizeof run;
    how.size = sizeof how;
    run.positions = &positions;
    for (const auto& option : one.options) {
      const auto& [name, value] = option;
      settings.push_back(name.c_str());
      settings.push_back(value.c_str());
      if (name == "overflow") run.overflow = value.c_str();
      if (name == "positions") positions.kind = value.c_str();
      if (name == "parse_special") run.parse_special = value == "true" ? 1 : 0;
    }
    settings.push_back(nullptr);
    how.settings = settings.data();
    phasor_encoder* const by = encoder(one.model);
    phasor_result* made = nullptr;
    const phasor_status status =
        one.call == "encode"  ? phasor_encode(by, &texts, &run, &made)
        : one.call == "embed" ? phasor_embed(by, &texts, &how, &made)
        : one.call == "label" ? phasor_label(by, &texts, &how, &made)
        : one.call == "rank"
            ? phasor_rank(by, &texts, &others, &how, &made)
            : phasor_classify(by, &texts, second.empty() ? nullptr : &others, &how, &made);
    const Held<phasor_result> result(made, phasor_result_free);
    EXPECT_EQ(status == PHASOR_OK, made != nullptr);
    return made != nullptr ? read_result(made) : Answer{{}, phasor_error_message()};
  }

  CaseModels models_;
  std::map<std::string, Held<phasor_encoder>> encoders_;
};

class CapiCasesTest : public CapiTest, public testing::WithParamInterface<const char*> {};

TEST_P(CapiCasesTest, ResultsHoldAllPartsOfTheLibrarys) {
  for (const Case& one : cases_of(GetParam())) {
    const Answer want = models_.answer(one), got = answer(one);
    expect_answer(one, want, got);
    EXPECT_EQ(got.arrays.size(), want.arrays.size()) << one.to_json();
  }
}

/// NULL in the place of any pointer but those at `optional` is an invalid argument, which is said.
template <typename... Arguments>
void expect_null_refused(const std::set<size_t>& optional, phasor_status (*call)(Arguments...),
                         std::type_identity_t<Arguments>... good) {
  constexpr bool kPointers[] = {std::is_pointer_v<Arguments>...};
  for (size_t n = 0; n < sizeof...(Arguments); ++n) {
    if (!kPointers[n] || optional.contains(n)) continue;
    size_t place = 0;
    const auto given = [&]<typename T>(T argument) { return place++ == n ? T{} : argument; };
    const std::tuple<Arguments...> arguments{given(good)...};
    EXPECT_EQ(std::apply(call, arguments), PHASOR_INVALID_ARGUMENT) << n;
    EXPECT_NE(std::string(phasor_error_message()).find("NULL"), std::string::npos)
        << n << phasor_error_message();
  }
}

TEST_F(CapiTest, NullIsRefusedWhereSomethingIsNeeded) {
  phasor_encoder* const by = encoder("relevance");
  phasor_model* model = nullptr;
  ASSERT_EQ(phasor_model_load("sinusoidal", nullptr, &model), PHASOR_OK);
  const Held<phasor_model> held(model, phasor_model_free);
  const BorrowedTexts one({"a"});
  const phasor_texts texts = one.all();
  const int32_t id = 5;
  const int64_t offsets[] = {0, 1};
  float hidden[12] = {}, logits[56];
  phasor_result* result = nullptr;
  phasor_encoder* made = nullptr;
  phasor_stop* stop = nullptr;
  ASSERT_EQ(phasor_tokenize(model, &texts, nullptr, nullptr, &result), PHASOR_OK);
  const Held<phasor_result> tokens(result, phasor_result_free);
  phasor_array array;
  expect_null_refused({}, phasor_result_array, result, "token_ids", -1, &array);
  result = nullptr;
  expect_null_refused({1}, phasor_model_load, "sinusoidal", nullptr, &model);
  expect_null_refused({}, phasor_model_tensors, model, &result);
  expect_null_refused({}, phasor_add_models_folder, "models");
  expect_null_refused({2, 3}, phasor_tokenize, model, &texts, nullptr, nullptr, &result);
  expect_null_refused({}, phasor_pieces, model, &id, 1, &result);
  expect_null_refused({1}, phasor_encoder_create, model, nullptr, &made);
  expect_null_refused({}, phasor_stop_create, &stop);
  expect_null_refused({2}, phasor_encode, by, &texts, nullptr, &result);
  expect_null_refused({4}, phasor_encode_ids, by, &id, offsets, 1, nullptr, &result);
  expect_null_refused({2}, phasor_embed, by, &texts, nullptr, &result);
  expect_null_refused({2, 3}, phasor_classify, by, &texts, nullptr, nullptr, &result);
  expect_null_refused({2}, phasor_label, by, &texts, nullptr, &result);
  expect_null_refused({3}, phasor_rank, by, &texts, &texts, nullptr, &result);
  expect_null_refused({}, phasor_mlm_logits, by, hidden, 1, logits, 56);
  expect_null_refused({2, 3}, phasor_position_vectors, model, 2, nullptr, nullptr, &result);
  expect_null_refused({2}, phasor_observe, by, &texts, nullptr, &result);
  expect_null_refused({3}, phasor_compare, by, by, &texts, nullptr, &result);
  EXPECT_TRUE(result == nullptr && made == nullptr && stop == nullptr);
}

INSTANTIATE_TEST_SUITE_P(Calls, CapiCasesTest,
                         testing::Values("embed", "classify", "label", "rank", "encode"));

}  // namespace
}  // namespace phasor
