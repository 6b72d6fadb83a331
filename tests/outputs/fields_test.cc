// The options of calls that read texts, all in one table: who uses each, and how it is written.
#include "phasor/fields.h"

#include <stop_token>

#include "tests/support/bert_folder.h"

namespace phasor {
namespace {

constexpr uint32_t kAll = kUseEmbed | kUseClassify | kUseLabel | kUseRank;

/// Texts of values of a field.
std::vector<std::string> texts_of(const Field& field) {
  std::vector<std::string> all;
  if (field.values != nullptr) all.assign(field.values().begin(), field.values().end());
  switch (field.type) {
    case FieldType::kFlag:
    case FieldType::kSwitch:
      return {"false", "true"};
    case FieldType::kCount:
      return {"0", "1", "9223372036854775807"};
    case FieldType::kText:
      return {"", "a, \"b\"\n", "Öl: "};
    case FieldType::kNames:
      all.push_back(all.front() + "," + all.back());
      all.push_back(all.back() + "," + all.back());
      return all;
    default:
      return all;
  }
}

/// Options that set this field alone.
TextOptions sample_of(const Field& field) {
  static float memory[1];
  static const std::stop_source stop;
  TextOptions options;
  if (field.read != nullptr) field.read(options, texts_of(field).back());
  if (field.name == "positions") options.positions = Positions::none();
  if (field.name == "output") options.output = memory;
  if (field.name == "progress") options.progress = [](int64_t, int64_t) {};
  if (field.name == "stop") options.stop = stop.get_token();
  return options;
}

std::vector<std::string_view> set_fields(const TextOptions& options) {
  std::vector<std::string_view> set;
  for (const Field& each : fields())
    if (each.is_set(options)) set.push_back(each.name);
  return set;
}

/// Becomes whatever a member is initialised with.
struct Anything {
  template <typename T>
  operator T() const;
};
template <typename T, typename... Members>
consteval size_t num_members() {
  if constexpr (requires { T{Members()..., Anything()}; })
    return num_members<T, Members..., Anything>();
  return sizeof...(Members);
}

TEST(FieldsTest, EveryMemberHasARowAndIsNotSetByDefault) {
  EXPECT_EQ(fields().size(), num_members<TextOptions>());
  EXPECT_TRUE(set_fields({}).empty());
  for (const Field& field : fields()) {
    EXPECT_EQ(set_fields(sample_of(field)), std::vector{field.name});
    EXPECT_FALSE(field.help.empty());
  }
}

TEST(FieldsTest, WhatIsReadIsPrintedTheSame) {
  for (const Field& field : fields()) {
    if (field.read == nullptr) continue;
    for (const std::string& text : texts_of(field)) {
      SCOPED_TRACE(fmt::format("{} \"{}\"", field.name, text));
      TextOptions options;
      field.read(options, text);
      EXPECT_EQ(field.text(options), text);
      TextOptions again;
      field.read(again, field.text(options));
      EXPECT_EQ(field.text(again), text);
      for (const std::string_view name : set_fields(options)) EXPECT_EQ(name, field.name);
      const bool is_optional = field.type == FieldType::kSwitch || field.name == "prompt";
      EXPECT_TRUE(field.is_set(options) || !is_optional);
      EXPECT_NO_THROW(check_fields(options, kAll, ""));
    }
  }
  TextOptions options;
  field("kinds").read(options, "sparse,states");
  EXPECT_EQ(options.kinds, (std::vector{VectorKind::kSparse, VectorKind::kStates}));
  EXPECT_EQ(uses_of(options), kUseSparse | kUseStates);
  EXPECT_EQ(uses_of({}), kUseDense);
  field("overflow").read(options, "window");
  EXPECT_EQ(options.overflow, Overflow::kWindow);
}

TEST(FieldsTest, CallsMayShareARunWhereAllButProgressAndStopIsEqual) {
  const auto only_watches = [](const Field& field) {
    return field.name == "progress" || field.name == "stop";
  };
  for (const Field& a : fields()) {
    EXPECT_EQ(may_share(sample_of(a), {}), only_watches(a)) << a.name;
    for (const Field& b : fields()) {
      const bool are_equal = a.name == b.name && a.text != nullptr;
      EXPECT_EQ(may_share(sample_of(a), sample_of(b)),
                are_equal || (only_watches(a) && only_watches(b)))
          << a.name << " " << b.name;
    }
  }
  for (const Field& field : fields()) {
    if (field.read == nullptr) continue;
    for (const std::string& one : texts_of(field)) {
      for (const std::string& other : texts_of(field)) {
        TextOptions a, b;
        field.read(a, one);
        field.read(b, other);
        EXPECT_EQ(may_share(a, b), one == other) << field.name << " " << one << " " << other;
      }
    }
  }
}

TEST(FieldsTest, TextsThatAreNoValuesAreRefused) {
  for (const Field& field : fields()) {
    if (field.read == nullptr || field.type == FieldType::kText) continue;
    for (const char* const wrong : {"", "maybe", "1.5", "TRUE", " 1", "9223372036854775808"}) {
      TextOptions options;
      EXPECT_INVALID(field.read(options, wrong), {wrong});
      EXPECT_TRUE(set_fields(options).empty());
    }
  }
  TextOptions options;
  EXPECT_INVALID(field("pooling").read(options, "cls,"), {"weightedmean"});
  for (const char* const wrong : {"max_token", "maxtokens", "max-tokens"})
    EXPECT_INVALID(field(wrong), {wrong, "did you mean max_tokens?"});
  EXPECT_INVALID(field("?"), {"kinds", "batch_tokens"});
}

TEST(FieldsTest, ACallRefusesValuesOutOfRange) {
  const BertFolder folder({"relevant"});
  Encoder encoder(Model::load(folder.path()));
  for (const TextOptions& wrong :
       std::vector<TextOptions>{{.max_tokens = -1},
                                {.dimensions = -1},
                                {.batch_tokens = -1},
                                {.role = static_cast<TextRole>(3)},
                                {.pooling = {PoolingMode::kCls, static_cast<PoolingMode>(-1)}},
                                {.overflow = static_cast<Overflow>(99)},
                                {.truncation_side = static_cast<TruncationSide>(99)},
                                {.offset_unit = static_cast<OffsetUnit>(99)},
                                {.aggregation = static_cast<Aggregation>(99)}}) {
    for (const std::function<void()>& call : std::initializer_list<std::function<void()>>{
             [&] { encoder.embed("a", wrong); }, [&] { encoder.classify("a", wrong); },
             [&] { encoder.classify("a", "b", wrong); }, [&] { encoder.label("a", wrong); },
             [&] { encoder.rank("a", "b", wrong); }})
      EXPECT_THROW(call(), InvalidArgument) << set_fields(wrong)[0];
    EXPECT_THROW(check_fields(wrong, kAll, ""), InvalidArgument) << set_fields(wrong)[0];
  }
  EXPECT_INVALID(encoder.embed("a", {.max_tokens = -1}), {"max_tokens is -1", "0"});
  EXPECT_INVALID(encoder.embed("a", {.kinds = {static_cast<VectorKind>(99)}}), {"99", "states"});
  EXPECT_INVALID(encoder.embed("a", {.prompt = "", .prompt_name = "a"}), {"prompt or prompt_name"});
}

TEST(FieldsTest, TextsInBracesAreTextsAndOptionsAreOptions) {
  const BertFolder folder({"no", "yes"});
  Encoder encoder(Model::load(folder.path()));
  const auto num_tokens = [](const auto& result) { return result.reports.num_tokens; };
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(num_tokens(encoder.classify({"a", "b c"})), (Counts{3, 4}));
  EXPECT_EQ(num_tokens(encoder.classify("q", {"a", "b c"})), (Counts{5, 6}));
  EXPECT_EQ(num_tokens(encoder.classify({"p", "q"}, {"a", "b c"})), (Counts{5, 6}));
  EXPECT_EQ(num_tokens(encoder.classify("q q q q", {.max_tokens = 5})), Counts{5});
  EXPECT_EQ(num_tokens(encoder.classify("q", "a b c d", {.max_tokens = 5})), Counts{5});
  EXPECT_EQ(num_tokens(encoder.embed({"a", "b c"})), (Counts{3, 4}));
  EXPECT_EQ(num_tokens(encoder.embed({"a b c", "b"}, {.max_tokens = 4})), (Counts{4, 3}));
  EXPECT_EQ(num_tokens(encoder.embed("a", {})), Counts{3});
}

}  // namespace
}  // namespace phasor
