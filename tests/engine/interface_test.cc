// What applications compile against: what borrows, the names of enums, the classes of errors.
#include "tests/support/test.h"

namespace phasor {
namespace {

// Spans borrowed from a temporary would dangle.
template <typename Result>
concept LendsFromTemporary = requires(Result&& result) {
  std::move(result)[0];
};
static_assert(!LendsFromTemporary<Encoding> && !LendsFromTemporary<Vectors> &&
              !LendsFromTemporary<SparseRows> && !LendsFromTemporary<TokenRows> &&
              !LendsFromTemporary<Classification> && !LendsFromTemporary<Labels>);
static_assert(LendsFromTemporary<TextReports>);  // a copy

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
  for (const char* const wrong : {"", "nothing of the kind", "F99", "fp16", " bf16"})
    EXPECT_INVALID(parse<Enum>(wrong), {std::string(all.what), "\"" + std::string(wrong) + "\"",
                                        std::string(all.all.front()), std::string(all.all.back())});
}

template <typename... Enums>
void expect_names_of_all() {
  (expect_names<Enums>(), ...);
}

TEST(NamesTest, EveryEnumIsPrintedAndReadBack) {
  expect_names_of_all<Activation, Aggregation, ClassifierHead::Output, DType, ErrorCode,
                      KernelLibrary, NormKind, NormOrder, OffsetUnit, Overflow, PoolingMode,
                      PositionKind, ScoreBias, Positions::Source, Precision, ResidualCut::Site,
                      ResidualSource, RowMeasure, Similarity, SinusoidalLayout, TextRole,
                      TruncationSide, VectorKind, VectorType>();
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

}  // namespace
}  // namespace phasor
