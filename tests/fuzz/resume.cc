// What infer embed --resume finds: OUT.partial and its record. What is accepted can be finished,
// and is then as large as its lines.
#include "infer/cli/line_stream.h"
#include "infer/commands/embed/embed_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/run_program.h"

namespace phasor::fuzz {
namespace {

constexpr std::string_view kResumeFiles[] = {
    "out.npy.partial",   "out.npy.partial.json",   "out.safetensors.partial",
    "out.jsonl.partial", "out.jsonl.partial.json", "out.safetensors.partial.json"};
constexpr std::string_view kCorpus = "a b\nc\n\nd\n";
constexpr int64_t kWidth = 2;

infer::VectorFormat format_of(const std::filesystem::path& out) {
  return {.kind = infer::VectorFormat::kind_of(out),
          .width = kWidth,
          .made_with = {{"pooling", "m"}, {"phasor", "1"}}};
}

/// Goes on where the files say, to the end of the corpus or for so many lines. Whether there was
/// something to go on with.
bool go_on(const std::filesystem::path& out, const std::string& corpus, int64_t most) {
  infer::PartialFile file(out, format_of(out), true);
  const int64_t before = file.state().lines;
  infer::LineReader reader(corpus, true);
  infer::LineStream stream(reader, {.quiet = true});
  require(stream.skip(file.state(), file.partial()), "no signal has come");
  infer::Fingerprint input;
  infer::LineReader again(corpus, true);
  for (int64_t line = 1; const auto read = again.next(); ++line) {
    input.add_piece(read->text);
    if (line <= before) continue;
    if (line > most) return before > 0;
    file.append(std::vector<float>(kWidth, 0.5f), {line, input.text()});
  }
  const int64_t lines = file.state().lines;
  file.commit();
  const infer::VectorFormat format = format_of(out);
  if (format.kind != infer::VectorFormat::Kind::kJsonLines) {
    const std::string bytes = read_text_file(out), header = format.header(lines, input.text());
    require(bytes.starts_with(header), "the header says how many lines there are");
    require(std::ssize(bytes) == std::ssize(header) + lines * kWidth * 4,
            "there are as many vectors as lines");
  }
  return before > 0;
}

bool run_resume(std::string_view bytes) {
  static const Folder folder;
  folder.write("corpus.txt", kCorpus);
  folder.write(parts_of(bytes, "out.jsonl.partial.json", kResumeFiles), kResumeFiles);
  bool accepted = false;
  for (const std::string_view kind : infer::VectorFormat::kExtensions) {
    const auto out = folder.path() / ("out." + std::string(kind));
    std::filesystem::remove(out);
    survive([&] { accepted |= go_on(out, folder.path() / "corpus.txt", 1000); });
  }
  return accepted;
}

std::vector<std::string> resume_seeds() {
  std::vector<std::string> inputs;
  for (const std::string_view kind : infer::VectorFormat::kExtensions) {
    const Folder folder;
    folder.write("corpus.txt", kCorpus);
    go_on(folder.path() / ("out." + std::string(kind)), folder.path() / "corpus.txt", 2);
    Parts parts;
    for (const std::string_view name : kResumeFiles) {
      if (exists(folder.path() / name))
        parts[std::string(name)] = read_text_file(folder.path() / name);
    }
    inputs.push_back(input_of(parts));
  }
  return inputs;
}

}  // namespace

Fuzzer resume_fuzzer() {
  return {.name = "resume",
          .run = run_resume,
          .seeds = resume_seeds,
          .words = words(R"(
===\sout.npy.partial\n ===\sout.npy.partial.json\n ===\sout.jsonl.partial\n
===\sout.jsonl.partial.json\n ===\sout.safetensors.partial\n ===\sout.safetensors.partial.json\n
"made_with" "lines" "bytes" "input" "pooling":\s"m" 9223372036854775807 18446744073709551615 -1
1.5)"),
          .refused = {R"({"made_with": {"pooling": "other", "phasor": "1"}})"}};
}

}  // namespace phasor::fuzz
