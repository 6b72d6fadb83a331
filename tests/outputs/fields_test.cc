// The options of calls that read texts, all in one table: who uses each, and how it is written.
#include "phasor/fields.h"

#include <stop_token>

#include "tests/support/bert_folder.h"

namespace phasor {
namespace {

struct Sample {
  std::string_view name;
  uint32_t uses;        // as phasor/options.h says
  TextOptions options;  // sets this field alone
};

constexpr uint32_t kAll = kUseEmbed | kUseClassify | kUseLabel | kUseRank;

/// One for each member, in their order.
std::vector<Sample> samples() {
  static float memory[1];
  static const std::stop_source stop;
  return {{"kinds", kUseEmbed, {.kinds = {VectorKind::kDense}}},
          {"role", kUseEmbed, {.role = TextRole::kQuery}},
          {"pooling", kUseDense, {.pooling = {PoolingMode::kCls}}},
          {"normalize", kUseDense, {.normalize = false}},
          {"dimensions", kUseDense, {.dimensions = 1}},
          {"prompt", kUseEmbed | kUseClassify | kUseRank, {.prompt = ""}},
          {"prompt_name", kUseEmbed | kUseClassify, {.prompt_name = "query"}},
          {"max_tokens", kAll, {.max_tokens = 9}},
          {"overflow", kUseEmbed | kUseClassify | kUseRank, {.overflow = Overflow::kTruncate}},
          {"positions", kUseEmbed, {.positions = Positions::none()}},
          {"output", kUseDense, {.output = memory}},
          {"progress", kAll, {.progress = [](int64_t, int64_t) {}}},
          {"stop", kAll, {.stop = stop.get_token()}},
          {"parse_special", kAll, {.parse_special = true}},
          {"truncation_side",
           kUseEmbed | kUseClassify | kUseRank,
           {.truncation_side = TruncationSide::kLeft}},
          {"offset_unit",
           kUseTokens | kUseStates | kUseLabel,
           {.offset_unit = OffsetUnit::kCharacters}},
          {"aggregation", kUseLabel, {.aggregation = Aggregation::kMax}},
          {"batch_tokens", kUseEmbed, {.batch_tokens = 9}}};
}

std::vector<std::string_view> set_fields(const TextOptions& options) {
  std::vector<std::string_view> set;
  for (const Field& each : fields()) {
    if (each.is_set(options)) set.push_back(each.name);
  }
  return set;
}

TEST(FieldsTest, EveryMemberHasARowAndIsNotSetByDefault) {
  // A member more, and this does not compile.
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, last] = TextOptions();
  EXPECT_EQ(last, 0);
  EXPECT_EQ(fields().size(), 18u);
  EXPECT_TRUE(std::ranges::equal(fields(), samples(), {}, &Field::name, &Sample::name));
  EXPECT_TRUE(set_fields({}).empty());
  for (const Sample& sample : samples()) {
    EXPECT_EQ(set_fields(sample.options), std::vector{sample.name});
    EXPECT_EQ(field(sample.name).uses, sample.uses) << sample.name;
    EXPECT_FALSE(field(sample.name).help.empty());
  }
}

/// Texts of values of a field.
std::vector<std::string> texts_of(const Field& field) {
  std::vector<std::string> all;
  if (field.values != nullptr) all.assign(field.values().begin(), field.values().end());
  switch (field.type) {
    case FieldType::kFlag:
    case FieldType::kSwitch:
      return {"true", "false"};
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

TEST(FieldsTest, WhatIsReadIsPrintedTheSame) {
  std::set<std::string_view> of_text;
  for (const Field& field : fields()) {
    if (field.read == nullptr) continue;
    of_text.insert(field.name);
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
  EXPECT_EQ(of_text.size(), 14u);  // not positions, output, progress and stop
  TextOptions options;
  field("kinds").read(options, "sparse,states");
  EXPECT_EQ(options.kinds, (std::vector{VectorKind::kSparse, VectorKind::kStates}));
  EXPECT_EQ(uses_of(options), kUseSparse | kUseStates);
  EXPECT_EQ(uses_of({}), kUseDense);
  field("overflow").read(options, "window");
  EXPECT_EQ(options.overflow, Overflow::kWindow);
}

TEST(FieldsTest, CallsMayShareARunWhereAllButProgressAndStopIsEqual) {
  const auto only_watches = [](const Sample& sample) {
    return sample.name == "progress" || sample.name == "stop";
  };
  for (const Sample& a : samples()) {
    EXPECT_EQ(may_share(a.options, {}), only_watches(a)) << a.name;
    for (const Sample& b : samples()) {
      const bool are_equal = a.name == b.name && field(a.name).text != nullptr;
      EXPECT_EQ(may_share(a.options, b.options), are_equal || (only_watches(a) && only_watches(b)))
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
      expect_error<InvalidArgument>([&] { field.read(options, wrong); }, {wrong});
      EXPECT_TRUE(set_fields(options).empty());
    }
  }
  TextOptions options;
  expect_error<InvalidArgument>([&] { field("pooling").read(options, "cls,"); }, {"weightedmean"});
  for (const char* const wrong : {"max_token", "maxtokens", "max-tokens"})
    expect_error<InvalidArgument>([&] { field(wrong); }, {wrong, "did you mean max_tokens?"});
  expect_error<InvalidArgument>([&] { field("?"); }, {"kinds", "batch_tokens"});
}

/// Each call, and what it uses.
std::vector<std::tuple<uint32_t, std::string, std::function<void(Encoder&, TextOptions)>>> calls() {
  const auto embed = [](VectorKind kind) {
    return [kind](Encoder& encoder, TextOptions options) {
      if (kind != VectorKind::kDense) options.kinds = {kind};
      encoder.embed("a", options);
    };
  };
  return {
      {kUseDense, "embed()", embed(VectorKind::kDense)},
      {kUseSparse, "embed()", embed(VectorKind::kSparse)},
      {kUseTokens, "embed()", embed(VectorKind::kTokens)},
      {kUseStates, "embed()", embed(VectorKind::kStates)},
      {kUseClassify, "classify()",
       [](Encoder& encoder, const TextOptions& options) { encoder.classify("a", options); }},
      {kUseClassify, "classify()",
       [](Encoder& encoder, const TextOptions& options) { encoder.classify("a", "b", options); }},
      {kUseLabel, "label()",
       [](Encoder& encoder, const TextOptions& options) { encoder.label("a", options); }},
      {kUseRank, "rank()",
       [](Encoder& encoder, const TextOptions& options) { encoder.rank("a", "b", options); }}};
}

/// What the call says, if it throws.
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(FieldsTest, ACallRefusesByNameWhatItDoesNotUse) {
  const BertFolder folder({"relevant"});
  Encoder encoder(Model::load(folder.path()));
  for (const auto& [use, name, call] : calls()) {
    for (const Sample& sample : samples()) {
      const std::string message = message_of([&, &run = call] { run(encoder, sample.options); });
      const std::string refusal = fmt::format("{} does not use {}", name, sample.name);
      EXPECT_EQ(message == refusal, (sample.uses & use) == 0) << refusal << ": " << message;
    }
  }
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
    for (const auto& [use, name, call] : calls())
      EXPECT_THROW(call(encoder, wrong), InvalidArgument) << name << set_fields(wrong)[0];
    EXPECT_THROW(check_fields(wrong, kAll, ""), InvalidArgument) << set_fields(wrong)[0];
  }
  expect_error<InvalidArgument>([&] { encoder.embed("a", {.max_tokens = -1}); },
                                {"max_tokens is -1", "0"});
  expect_error<InvalidArgument>(
      [&] { encoder.embed("a", {.kinds = {static_cast<VectorKind>(4)}}); },
      {"4", "dense", "states"});
  expect_error<InvalidArgument>([&] { encoder.embed("a", {.prompt = "", .prompt_name = "a"}); },
                                {"prompt or prompt_name"});
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
