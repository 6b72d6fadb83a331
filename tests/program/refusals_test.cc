// Every way to misuse a command line: the exit code (2 usage, 3 input, 4 model), and what is said.
#include "tests/program/program.h"

namespace phasor {
namespace {

TEST(RefusalsTest, OfARun) {
  expect_refused(
      {{2, "--bogus", {"--bogus"}},
       {2, "-t -1 x", {"threads", "-1"}},
       {2, "-t many x", {"many"}},
       {2, "-m", {"--model"}},
       {2, "-m none -m none x", {"--model: give it once"}},
       {2, "--positions roatry x", {"roatry", "rotary"}},
       {2, "--positions rotary:1 x", {"rotary:1", "above 1"}},
       {2, "--positions sinusoidal:paris x", {"paris", "marian"}},
       {2, "--overflow wrap x", {"wrap", "interpolate"}},
       {2, "--save x.txt x", {"x.txt", ".safetensors"}},
       {2, "--save - x", {"--save", "streamed"}},
       {2, "--ids '5 dog' -q", {"dog"}},
       {2, "--ids 5 7", {"--ids", "texts", "--ids 5,7"}},
       {2, "--prefix a --ids 5", {"--prefix", "--ids"}},
       {2, "--lang fr --ids 5", {"--lang", "--ids"}},
       {3, "--ids 8192", {"8192", "8191"}},
       {2, "--ids -1", {"--ids", "'-1'", "from 0"}},
       {2, "--ids 99999999999", {"99999999999"}},
       {2, "--ids ' '", {"--ids"}},
       {3, "--positions learned x", {"position table", "sinusoidal"}},
       {3, "--lang fr Tom", {"no languages", "'fr'"}},
       {3, "tokenize --lang fr Tom", {"no languages", "'fr'"}},
       {3, "info --lang fr", {"no languages", "'fr'"}},
       {4, "-m no-such-model x", {"no-such-model", "sinusoidal", "hf download OWNER/MODEL"}},
       {4, "-m owner/bert x", {"hf download owner/bert --include '*.json' --include '*.txt' "}},
       {2, "info -m learned none", {"none and --model learned"}},
       {2, "info -m ''", {"-m,--model: the name is empty"}},
       {2, "info ''", {"MODEL: the name is empty"}}});
}

TEST(RefusalsTest, OfMisspelledNamesWithTheNearest) {
  expect_refused({
      {2, "observe --onyl split x", {"did you mean --only?", "infer observe --help lists"}},
      {2, "info a b", {"'b'", "infer info --help"}},
      {2, "observe --only slpit x", {"slpit", "did you mean split?"}},
      {2, "--positions lerned x", {"did you mean learned?"}},
      {2, "--positions maria x", {"did you mean marian?"}},
      {2, "--positions sinusoidal:fairsec x", {"did you mean fairseq?"}},
      {4, "-m sinusodal x", {"did you mean sinusoidal?"}},
      {4, "compare sinusoidal lerned", {"did you mean learned?"}},
      {2, "positions sinusoidal:maria", {"did you mean marian?"}},
      {2, "positions papr", {"no table 'papr'", "did you mean paper?"}},
      {2, "--precision int9 x", {"int9", "did you mean int8?"}},
      {2, "-qm none embed Tom", {"embed is a command", "infer embed OPTIONS", "-- embed"}},
      {2, "observ --html a.html x", {"--html", "did you mean the command infer observe?"}},
      {2, "help obsreve", {"obsreve", "did you mean observe?"}},
      {2, "embed --normalize=false x", {"--normalize takes no value"}},
      {2, "tokenize --nearest 3 x", {"; --nearest is an option of infer embed;"}},
      {2, "-i a.txt", {"-i is an option of infer embed, rank, classify, label, observe, compare"}},
      {2, "compare none none --save a", {"--save is an option of infer TEXT, observe, positions;"}},
      {2, "-x=1 x", {"no option -x;"}},
      {2, "-q=1 x", {"-q takes no value, so no '1'"}},
      {3, "embed -i -i=f", {"-i=f"}},
      {2, "serve --host= --port 0", {"--host", "empty"}},
  });
}

TEST(RefusalsTest, OfPrecisions) {
  for (const char* const line :
       {"--precision fp8 Tom", "embed --precision fp8 Tom", "compare --precision f32,fp8 none Tom"})
    expect_refused({{2, line, {"--precision", "\"fp8\"", "bf16", "int8", "auto"}}});
}

TEST(RefusalsTest, OfObserve) {
  const TempFolder folder;
  folder.write("a.txt", "Tom\n");
  fs::create_directory(folder / "folder");
  expect_refused({{2, "observe", {"give a text"}},
                  {2, "observe --edit twist Tom", {"--edit", "twist", "zero, mean, scale=X"}},
                  {2, "observe --edit scale=much Tom", {"scale=much", "scale=0.5"}},
                  {2, "observe --edit scale=nan Tom", {"scale=nan"}},
                  {2, "observe --edit shift=1.5 Tom", {"whole number"}},
                  {2, "observe --edit swap=2 Tom", {"swap=2,5"}},
                  {3, "observe --edit swap=2,50 Tom", {"50"}},
                  {3, "observe --edit shift=200 -m learned Tom", {"200"}},
                  {3, "observe --edit table=none.npy Tom", {"none.npy"}},
                  {3, "observe --cut-residual 0 Tom", {"1 to 6"}},
                  {3, "observe --cut-residual 7.attn Tom", {"1 to 6"}},
                  {2, "observe --cut-residual 1.head Tom", {"1.attn"}},
                  {2, "observe --head L1.0 Tom", {"2.1", "L1H0"}},
                  {3, "observe --head L9H0 Tom", {"L9H0", "L0H0 to L5H3"}},
                  {2, "observe --only moved Tom", {"--edit"}},
                  {2, "observe --only probe Tom", {"-i FILE"}},
                  {2, "observe --only pattern -i a.txt", {"give a text"}},
                  {2, "observe --without none Tom", {"--without", "'none'", "mean", "zero"}},
                  {2, "observe --baseline random:0 Tom", {"--baseline", "random:0", "own:N"}},
                  {2, "observe --baseline random: Tom", {"--baseline", "random:", "own:N"}},
                  {2, "observe --baseline random:11 Tom", {"--baseline", "random:11", "own:N"}},
                  {2, "observe --baseline zero Tom", {"--baseline", "zero", "own:N"}},
                  {2, "observe --csv --json Tom", {"--csv and --json"}},
                  {2, "observe --hooks all Tom", {"--save"}},
                  {2, "observe --save x.txt Tom", {".safetensors"}},
                  {3, "observe --save x.safetensors --hooks hook_nothing Tom", {"hook_nothing"}},
                  {2, "observe --save x.safetensors -i a.txt", {"give a text"}},
                  {3, "observe -i none.txt", {"none.txt"}},
                  {2, "observe --max-tokens 0 Tom", {"--max-tokens"}},
                  {3, "observe --html none/page.html Tom", {"--html", "there is no folder none"}},
                  {2, "observe --html - Tom", {"--html", "'-'", "page.html"}},
                  {2, "observe --html '' Tom", {"--html: the name is empty"}},
                  {3, "observe --html folder Tom", {"--html", "folder"}},
                  {2, "observe --ids 5 Tom", {"exclude"}}},
                 folder.path());
  const std::string dogs = repeat("dog ", 5000);
  expect_infer_fails({"observe", "-m", "none", dogs}, 3, {"5002 tokens", "MB", "--max-tokens"});
  expect_infer_fails(
      {"observe", "-m", "none", "--max-tokens", "1500", "--save", "/tmp/x.safetensors", dogs}, 3,
      {"1500 tokens"});
}

TEST(RefusalsTest, OfCompare) {
  const TempFolder folder;
  folder.write("blank.txt", "\n  \n");
  fs::create_directory(folder / "folder");
  fs::create_symlink("loop", folder / "loop");
  expect_refused(
      {{2, "compare", {"two models"}},
       {2, "compare none --mask causal 'Tom bit'", {"--mask twice"}},
       {2, "--mask left 'Tom bit'", {"--mask", "no mask 'left'"}},
       {2, "compare sinusoidal", {"two models", "--positions"}},
       {2, "compare --precision f32,int8", {"one with"}},
       {2, "compare none --precision f32,bf16,int8 Tom", {"--precision", "3"}},
       {2, "compare learned --positions none Tom", {"twice"}},
       {2, "compare learned --positions none --positions relative", {"relative"}},
       {3, "compare sinusoidal --positions learned --positions none", {"position table"}},
       {4, "compare sinusoidal 'Tom bit'", {"Tom bit", "two models"}},
       {4, "compare no-such-model none Tom", {"no-such-model"}},
       {3, "compare sinusoidal none --head 7.1 Tom", {"7.1", "1.1 to 6.4"}},
       {2, "compare sinusoidal none --only colour", {"colour", "order"}},
       {2, "compare sinusoidal none --only masked", {"-i FILE"}},
       {2, "compare sinusoidal none --only pattern", {"infer observe"}},
       {2, "compare sinusoidal none --csv --json", {"--csv and --json"}},
       {2, "compare sinusoidal none --ids 1 Tom", {"--ids"}},
       {3, "compare sinusoidal none --ids 9000", {"9000"}},
       {3, "compare sinusoidal none -i no-such-file", {"no-such-file"}},
       {3, "compare sinusoidal none -i folder", {"folder"}},
       {3, "compare sinusoidal none -i loop", {"loop"}},
       {3, "compare sinusoidal none -i blank.txt", {"blank.txt", "no text"}},
       {3, "compare sinusoidal none -", {"standard input"}},
       {3, "compare sinusoidal none --html none/page.html", {"page.html", "no folder none"}}},
      folder.path());
  const std::string model = bundled_model("learned").string();
  for (const std::string& second : {std::string("learned"), model}) {
    for (const std::string ways : {"--positions own --positions none", "--precision f32,int8"}) {
      expect_refused({{2,
                       "compare sinusoidal " + second + " " + ways,
                       {"infer compare sinusoidal " + second + ",", "leave out " + second}}});
    }
  }
}

TEST(RefusalsTest, OfPositions) {
  const TempFolder folder;
  folder.write("t.npz", "PK");
  expect_refused({{2, "positions random --base 10", {"--base", "random"}},
                  {2, "positions --base nan", {"--base", "nan"}},
                  {2, "positions --base 1", {"--base", "above 1"}},
                  {2, "positions --length 0", {"--length", "0", "4096"}},
                  {2, "positions --length -1", {"--length", "-1"}},
                  {2, "positions random --width 4097", {"--width", "4097"}},
                  {2, "positions --length many", {"--length", "many"}},
                  {4, "positions missing", {"missing"}},
                  {2, "positions learned --width 4", {"--width", "own"}},
                  {2, "positions learned --base 4", {"--base", "own"}},
                  {3, "positions missing.npy", {"missing.npy", "no such file"}},
                  {3, "positions t.npz", {"t.npz", ".npy nor .safetensors"}},
                  {2, "positions paper marian t2t", {"3 tables", "paper, marian, t2t"}},
                  {2, "positions --only foo", {"foo", "values", "against"}},
                  {2, "positions --only against", {"two tables"}},
                  {2, "positions --csv --json", {"--csv", "--json"}},
                  {2, "positions paper marian --csv", {"--csv", "one table"}},
                  {2, "positions --save t.txt", {"t.txt", ".npy or .safetensors"}},
                  {3, "positions --save none/t.npy", {"there is no folder none"}},
                  {2, "positions --html -", {"--html", "'-'", "page.html"}}},
                 folder.path());
}

TEST(RefusalsTest, OfEmbedAndCheck) {
  const TempFolder folder;
  fs::create_directory(folder / "b.npy");
  expect_refused(
      {{2, "embed -i a.txt Tom", {"leave out -i", "--nearest"}},
       {2, "embed --normalize --no-normalize a", {"exclude"}},
       {2, "embed --prefix a\xFF Tom", {"--prefix", "not valid UTF-8"}},
       {2, "embed --similarity", {"--similarity", "give texts"}},
       {2, "embed --similarity -i a.txt", {"--similarity", "--nearest 3"}},
       {2, "embed --nearest 3 -i a.txt", {"--nearest", "give texts"}},
       {2, "embed --nearest 3 -o a.npy a", {"--nearest", "-o"}},
       {2, "embed --nearest 3 -", {"--nearest", "standard input"}},
       {2, "embed --query-prefix q a", {"--query-prefix", "--nearest"}},
       {2, "embed -o a.txt", {"a.txt", ".safetensors"}},
       {2, "embed -o=a.txt", {"-o: a.txt"}},
       {2, "embed -o= a", {"-o,--output: the name is empty"}},
       {2, "embed --offset-unit none a", {"infer embed --kinds tokens,states, infer label"}},
       {2, "embed --json -o a.npy a", {"--json", ".jsonl"}},
       {3, "embed -q -i none.txt", {"none.txt", "no such file"}},
       {3, "embed -q -i b.npy", {"b.npy", "Is a directory"}},
       {3, "embed -q -o none/a.npy", {"a.npy", "there is no folder none"}},
       {3, "embed -q -o b.npy", {"b.npy", "Is a directory"}}},
      folder.path());
  EXPECT_EQ(file_names(folder.path()), Words{"b.npy"});
}

}  // namespace
}  // namespace phasor
