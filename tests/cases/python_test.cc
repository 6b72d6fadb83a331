// The Python package answers every case as the library does, or has no argument for it.
#include "tests/support/cases.h"
#include "tests/support/run_program.h"

namespace phasor {
namespace {

/// What Python does otherwise, like sentence-transformers: any value is a flag, and false the
/// model's own; a prompt counts more than a name; of vectors of length 1 the first numbers are
/// given as they are. NumPy ranks by vectors of texts.
bool differs(const Case& one) {
  for (const char* const flag : {"parse_special", "normalize"}) {
    const auto found = one.options.find(flag);
    if (found != one.options.end() && found->second == "maybe") return true;
  }
  if (one.options.contains("prompt") && one.options.contains("prompt_name")) return true;
  return one.model == "sentences" && (one.call == "rank" || one.options.contains("dimensions") ||
                                      one.options.contains("normalize"));
}

/// Options for which some methods have an argument of their own, and others none. All the others of
/// the library are in phasor.TextOptions.
constexpr std::string_view kOwn[] = {
    "kinds",  "role",        "normalize_embeddings", "truncate_dim",
    "prompt", "prompt_name", "aggregation_strategy", "offset_unit"};

TEST(PythonCasesTest, MethodsAnswerAsTheLibrary) {
  if (HAS_ADDRESS_SANITIZER || HAS_THREAD_SANITIZER) GTEST_SKIP() << "Python has no sanitizer";
  CaseModels models;
  std::vector<Case> all;
  ProgramOptions run;
  for (const char* const call : {"embed", "classify", "label", "rank", "encode"}) {
    for (const Case& one : cases_of(call)) {
      if (differs(one)) continue;
      all.push_back(one);
      json line = one.to_json();
      line["folder"] = models.folders().at(one.model);
      run.input += line.dump() + "\n";
    }
  }
  const ProgramResult result = run_program(
      {"/usr/bin/env", "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=" PHASOR_SOURCE_DIR "/python",
       "LD_LIBRARY_PATH=" LIBRARY_DIR, "sh", "-c",
       "for python in /usr/bin/python3 python3; do"
       "  $python -c 'import numpy' && exec $python \"$0\"; done; exit 77",
       PHASOR_SOURCE_DIR "/tests/cases/answers.py"},
      run);
  if (result.exit_code == 77) GTEST_SKIP() << "There is no numpy; install python3-numpy.";
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    Case& one = all[i];
    const json said = json::parse(lines[i]);
    Answer want = models.answer(one, {{"offset_unit", "characters"}}), got;
    got.error = said.value("error", "");
    if (said.contains("arrays")) got.arrays = said["arrays"];
    std::vector<std::string> words = {"truncate_dim", "aggregation_strategy"};
    for (const auto& [name, value] : one.options) words.push_back(name);
    if (const json unknown = said.value("unknown", json::array()); !unknown.empty()) {
      want = {{}, "unknown"};
      one.error = {unknown[0]};
      EXPECT_TRUE(one.call == "encode" || std::ranges::count(kOwn, one.error[0]) > 0)
          << one.error[0] << " is not in TextOptions";
    }
    expect_answer(one, want, got, words);
  }
}

}  // namespace
}  // namespace phasor
