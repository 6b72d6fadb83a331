// What applications compile against: the layout of options, the names of enums, the classes of
// errors.
#include <cstddef>
#include <type_traits>

#include "phasor/quantize.h"
#include "tests/support/test.h"

namespace phasor {
namespace {

// A compiled application passes these to a newer library. A new field takes the place of
// `reserved`; where one of these sizes or places changes, so must the library's SOVERSION.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // supported where it matters: GCC and clang
static_assert(sizeof(EncoderOptions) == 80 && offsetof(EncoderOptions, reserved) == 40);
static_assert(sizeof(LoadOptions) == 104 && offsetof(LoadOptions, reserved) == 48);
static_assert(sizeof(RunOptions) == 208 && offsetof(RunOptions, reserved) == 176);
static_assert(sizeof(EmbedOptions) == 256 && offsetof(EmbedOptions, reserved) == 208);
static_assert(sizeof(LabelOptions) == 96 && offsetof(LabelOptions, reserved) == 64);
static_assert(sizeof(ClassifyOptions) == 120 && offsetof(ClassifyOptions, reserved) == 104);
static_assert(sizeof(TokenizeOptions) == 48 && offsetof(TokenizeOptions, reserved) == 32);
static_assert(sizeof(TextReport) == 40);
static_assert(sizeof(lens::Run) == 320 && offsetof(lens::Run, reserved) == 304);
static_assert(sizeof(lens::ObserveOptions) == 256 &&
              offsetof(lens::ObserveOptions, reserved) == 200);
static_assert(sizeof(Encoder) == 8 && sizeof(Encoding) == 16 && sizeof(Embeddings) == 16 &&
              sizeof(Positions) == 16 && sizeof(Classification) == 16);

// Spans borrowed from a temporary would dangle.
template <typename Result>
concept LendsFromTemporary = requires(Result&& result) {
  std::move(result).hidden(0);
}
|| requires(Result&& result) { std::move(result).values(); }
|| requires(Result&& result) { std::move(result).logits(); };
static_assert(!LendsFromTemporary<Encoding> && !LendsFromTemporary<Embeddings> &&
              !LendsFromTemporary<Classification>);

template <typename Enum>
void expect_names() {
  std::set<std::string_view> seen;
  const EnumNames& all = names<Enum>();
  EXPECT_FALSE(all.what.empty());
  for (size_t i = 0; i < all.all.size(); ++i) {
    const auto value = static_cast<Enum>(i);
    EXPECT_EQ(parse<Enum>(to_string(value)), value);
    EXPECT_FALSE(to_string(value).empty());
    EXPECT_TRUE(seen.insert(to_string(value)).second) << to_string(value);
  }
  for (const char* const wrong : {"", "nothing of the kind", "F99", "fp16", " bf16"}) {
    expect_error<InvalidArgument>([&] { parse<Enum>(wrong); },
                                  {std::string(all.what), "\"" + std::string(wrong) + "\"",
                                   std::string(all.all.front()), std::string(all.all.back())});
  }
}

template <typename... Enums>
void expect_names_of_all() {
  (expect_names<Enums>(), ...);
}

TEST(NamesTest, EveryEnumIsPrintedAndReadBack) {
  expect_names_of_all<Activation, ClassifierHead::Output, DType, ErrorCode, KernelLibrary, NormKind,
                      NormOrder, Overflow, PoolingMode, PositionKind, ScoreBias, Positions::Source,
                      Precision, ResidualCut::Site, ResidualSource, RowMeasure, Similarity,
                      SinusoidalLayout, VectorType>();
  EXPECT_EQ(to_string(Precision::kBfloat16), "bf16");
  EXPECT_EQ(fmt::format("{}", fmt::join(names<Precision>().all, ", ")), "f32, bf16, int8, auto");
  EXPECT_EQ(fmt::format("{}", fmt::join(names<SinusoidalLayout>().all, ", ")),
            "paper, marian, t2t, fairseq, opennmt");
  EXPECT_EQ(fmt::format("{}", fmt::join(names<Overflow>().all, ", ")),
            "error, truncate, clamp, interpolate, window");
  EXPECT_EQ(to_string(ErrorCode::kUnsupported), "unsupported");
}

TEST(ErrorsTest, OneBaseCarriesACodeThatAProgramCanSwitchOn) {
  static_assert(std::is_base_of_v<Error, InvalidArgument> && std::is_base_of_v<Error, ModelError> &&
                std::is_base_of_v<Error, BackendError>);
  expect_code(ErrorCode::kNotFound, "", [] { Model::load("no such model"); });
  expect_code(ErrorCode::kInvalidArgument, "", [] { Encoder(std::shared_ptr<const Model>()); });
  const TempFolder folder;
  expect_code(ErrorCode::kInvalidModel, "", [&] { Model::load(folder.path()); });
  folder.write("model.bin", "x");
  expect_code(ErrorCode::kUnsupported, "", [&] { Model::load(folder.path()); });
  folder.write("config.json", R"({"model_type": "llama"})");
  expect_code(ErrorCode::kUnsupported, "", [&] { Model::load(folder.path()); });
  folder.write("config.json", R"({"model_type": "bert", "is_decoder": true})");
  expect_code(ErrorCode::kUnsupported, "", [&] { Model::load(folder.path()); });
  folder.write("config.json", "{");
  expect_code(ErrorCode::kInvalidModel, "", [&] { Model::load(folder.path()); });
  Encoder encoder(Model::load(bundled_model("learned")));
  const std::vector<int32_t> long_ids(129, 5);
  expect_code(ErrorCode::kTooLong, "", [&] { encoder.encode_ids(long_ids); });
  const RunOptions no_site = {.cut_residuals = {{.site = static_cast<ResidualCut::Site>(99)}}};
  expect_code(ErrorCode::kInvalidArgument, "", [&] { encoder.encode("a", no_site); });
  const auto no_layout = static_cast<SinusoidalLayout>(99);
  expect_code(ErrorCode::kInvalidArgument, "", [&] { Positions::sinusoidal(no_layout); });
  expect_code(ErrorCode::kInvalidArgument, "", [&] { sinusoidal_table(no_layout, 1, 4); });
}

TEST(ModelTest, ParametersAreNamedAndCounted) {
  const auto model = Model::load(bundled_model("learned"));
  int64_t count = 0;
  std::set<std::string> seen;
  for (const auto& [name, tensor] : model->parameters()) {
    EXPECT_TRUE(seen.insert(name).second) << name;
    EXPECT_TRUE(tensor.present()) << name;
    count += tensor.num_elements();
  }
  EXPECT_EQ(count, model->num_parameters());
  EXPECT_TRUE(seen.contains("blocks.3.attn.q.weight"));
}

}  // namespace
}  // namespace phasor
