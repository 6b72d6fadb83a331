// Examples in other languages than C++ and Python, where their compilers are.
#include "tests/program/program.h"

namespace phasor {
namespace {

/// Runs a script in an empty folder; $LIBRARY is the folder of libphasor_c.so, $EXAMPLES that of
/// the sources. A script that exits with 77 lacks its compiler.
ProgramResult run_script(const std::string& script) {
  const TempFolder folder;
  const std::string settings = fmt::format(
      "cd '{}'; LIBRARY='{}' EXAMPLES='{}'; export PHASOR_MODELS='{}'\n", folder.path().string(),
      LIBRARY_DIR, PHASOR_SOURCE_DIR "/examples", PHASOR_SOURCE_DIR "/models");
  return run_program({"/bin/sh", "-c", settings + script});
}

struct Language {
  const char *name, *build;
};

class LanguagesTest : public testing::TestWithParam<Language> {};

TEST_P(LanguagesTest, ItsProgramPrintsTheCosineOfTheOneInC) {
  if (HAS_ADDRESS_SANITIZER || HAS_THREAD_SANITIZER) GTEST_SKIP() << "it has no sanitizer";
  const ProgramResult result =
      run_script(std::string(GetParam().build) +
                 "\nLD_LIBRARY_PATH=$LIBRARY ./encode && \"$LIBRARY/bin/encode_c\"");
  if (result.exit_code == 77) GTEST_SKIP() << "there is no compiler for " << GetParam().name;
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 2u) << result.out;
  EXPECT_EQ(lines[0], lines[1]);
}

INSTANTIATE_TEST_SUITE_P(, LanguagesTest,
                         testing::Values(Language{"Go", R"(command -v go >/dev/null || exit 77
export CGO_CFLAGS="-I$EXAMPLES/../include" CGO_LDFLAGS="-L$LIBRARY -lphasor_c"
go build -o encode "$EXAMPLES/encode.go" || exit 1)"},
                                         Language{"Rust", R"(command -v rustc >/dev/null || exit 77
rustc --edition 2021 -O -o encode "$EXAMPLES/encode.rs" -L "$LIBRARY" || exit 1)"}),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(SqliteTest, ItFindsTheLineThatTheLibraryFinds) {
  if (HAS_ADDRESS_SANITIZER || HAS_THREAD_SANITIZER) GTEST_SKIP() << "it has no sanitizer";
  const auto run = [](const std::string& query) {
    return run_script(
        R"(command -v sqlite3 >/dev/null && [ -e "$LIBRARY/examples/phasor_sqlite.so" ] || exit 77
sqlite3 -cmd ".load '$LIBRARY/examples/phasor_sqlite'" :memory: ")" +
        query + "\"");
  };
  const ProgramResult nearest =
      run("CREATE TABLE lines(text, vector);"
          "INSERT INTO lines SELECT value, phasor_embed(value) FROM "
          "json_each('[\\\"It rains.\\\", \\\"Tom bit a dog.\\\", \\\"\\\"]');"
          "SELECT text, phasor_similarity(vector, phasor_embed('A dog bit Tom.')) AS s FROM lines "
          "ORDER BY s DESC LIMIT 1; SELECT phasor_embed(NULL) IS NULL;");
  if (nearest.exit_code == 77) GTEST_SKIP() << "there is no SQLite, or no header of it";
  ASSERT_EQ(nearest.exit_code, 0) << nearest.err;
  const std::vector<std::string> lines = lines_of(nearest.out);
  ASSERT_EQ(lines.size(), 2u) << nearest.out;
  Encoder encoder(Model::load("sinusoidal"));
  const Vectors vectors = encoder.embed({"Tom bit a dog.", "A dog bit Tom."});
  EXPECT_EQ(lines[0].substr(0, 15), "Tom bit a dog.|");
  EXPECT_NEAR(std::stod(lines[0].substr(15)), cosine(vectors[0], vectors[1]), 1e-6);
  EXPECT_EQ(lines[1], "1");
  for (const auto& [query, words] : std::vector<std::pair<const char*, const char*>>{
           {"SELECT phasor_embed('a', 'nothing')", "no model 'nothing'"},
           {"SELECT phasor_similarity(phasor_embed('a'), x'00')", "no vectors of one model"},
           {"SELECT phasor_similarity(x'0000', x'0000')", "no vectors of one model"}}) {
    const ProgramResult refused = run(query);
    EXPECT_NE(refused.exit_code, 0) << query;
    EXPECT_TRUE(contains(refused.err, words)) << refused.err;
  }
}

}  // namespace
}  // namespace phasor
