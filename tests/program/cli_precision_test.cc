// --precision on the command line: what it changes, what it costs, and what is said about it.
#include "infer/cli/options.h"
#include "tests/program/program.h"

namespace phasor {
namespace {

TEST(CliPrecisionTest, ARunComputesInThePrecisionAskedFor) {
  const json f32 = json_of("embed 'Tom bit a dog.'");
  for (const std::string name : {"f32", "bf16", "int8", "auto"}) {
    const json line = json_of("embed 'Tom bit a dog.' --precision " + name);
    Encoder encoder(Model::load("sinusoidal"), {.precision = parse<Precision>(name)});
    const Vectors vectors = encoder.embed("Tom bit a dog.");
    expect_close<float, float>(line["embedding"].get<std::vector<float>>(), vectors[0], 1e-5,
                               name.c_str());
    EXPECT_EQ(line == f32, encoder.precision() == Precision::kFloat32) << name;
    EXPECT_EQ(json_of("Tom --precision " + name)["views"]["norm"].size(), 7u);
  }
}

TEST(CliPrecisionTest, AskingForASlowOneSaysSoOnce) {
  for (const std::string name : {"auto", "bf16", "int8"}) {
    const std::string why = why_slow(parse<Precision>(name));
    for (const std::string line :
         {"Tom Tim", "embed Tom Tim", "compare none learned --only effect Tom"}) {
      const Words words = words_of(line + " --precision " + name);
      const Words notes = lines_of(succeed(words).err);
      EXPECT_EQ(std::ranges::count(notes, "note: " + why), why.empty() ? 0 : 1) << line << name;
      EXPECT_EQ(succeed(words + Words{"-q"}).err, "") << line << name;
    }
  }
}

TEST(CliPrecisionTest, WhichPrecisionsAreFasterIsSaidWhereNoneWasChosen) {
  infer::CommonOptions options;
  EXPECT_EQ(infer::faster_note(options).empty(), precision_gains().empty());
  options.kernels = KernelLibrary::kOneDnn;
  EXPECT_EQ(infer::faster_note(options), "") << "measured with phasor's own";
  options = {};
  options.precision = Precision::kFloat32;
  EXPECT_EQ(infer::faster_note(options), "");
  const std::string err = run_infer({"embed"}, {.input = "Tom\n"}).err;
  EXPECT_FALSE(contains(err, "--precision")) << "a short run is over before a choice pays";
}

TEST(CliPrecisionTest, InfoSaysWhatAutoIsAndWhatIsSlowHere) {
  const json precision = json_of("info")["precision"];
  EXPECT_EQ(precision["auto"], to_string(fastest_precision()));
  const json slow = precision.value("slow", json::object());
  EXPECT_FALSE(slow.contains(precision["auto"]));
  for (const char* name : {"bf16", "int8"}) {
    const std::string why = why_slow(parse<Precision>(name));
    EXPECT_EQ(slow.value(name, ""), why);
  }
}

}  // namespace
}  // namespace phasor
