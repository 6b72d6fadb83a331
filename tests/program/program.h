// What the tests of the infer program share: command lines as texts, and tables of refusals.
#pragma once

#include "tests/support/run_program.h"
#include "tests/support/tiny_model.h"

namespace phasor {

using Words = std::vector<std::string>;

inline Words operator+(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// The words of a command line; 'between quotes' blanks belong to a word.
inline Words words_of(const std::string& line) {
  Words words;
  bool inside = false, quoted = false;
  for (const char c : line) {
    const bool ends = c == ' ' && !quoted;
    if (!ends && !inside) words.emplace_back();
    inside = !ends;
    if (c == '\'') {
      quoted = !quoted;
    } else if (!ends) {
      words.back() += c;
    }
  }
  return words;
}

inline ProgramResult run_infer(Words arguments, const ProgramOptions& options = {}) {
  arguments.insert(arguments.begin(), INFER_BINARY);
  return run_program(arguments, options);
}

/// Runs infer, which must succeed.
inline ProgramResult succeed(const Words& arguments, const ProgramOptions& options = {}) {
  const ProgramResult result = run_infer(arguments, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result;
}

/// "embed", "serve", …: what infer --help lists.
inline Words commands() {
  Words names;
  bool listed = false;
  for (const std::string& line : lines_of(succeed({"--help"}).out)) {
    if (listed && line.empty()) break;
    if (listed) names.push_back(words_of(line.substr(2)).at(0));
    listed = listed || line.starts_with("Commands (");
  }
  return names;
}

/// What infer prints, which must succeed and have nothing to note.
inline std::string printed(const std::string& line) {
  const ProgramResult result = succeed(words_of(line));
  EXPECT_EQ(result.err, "");
  return result.out;
}

/// Runs infer --json, which must succeed, and parses its lines.
inline std::vector<json> infer_json(Words arguments, const ProgramOptions& options = {}) {
  arguments.insert(arguments.begin() + (arguments.at(0).starts_with("-") ? 0 : 1), "--json");
  const ProgramResult result = succeed(arguments, options);
  std::vector<json> objects;
  for (const std::string& line : lines_of(result.out)) objects.push_back(json::parse(line));
  return objects;
}

inline void expect_contains(const std::string& text, const Words& parts) {
  for (const std::string& part : parts) EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
}

/// Expects this exit code, nothing on stdout, and one line on stderr that holds `words`.
inline void expect_infer_fails(const Words& arguments, int exit_code, const Words& words,
                               const ProgramOptions& options = {}) {
  const ProgramResult result = run_infer(arguments, options);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_TRUE(result.err.starts_with("infer: ")) << result.err;
  expect_contains(result.err, words);
}

/// A command line that fails: infer's exit code, and what its one line on stderr says.
struct Refusal {
  int exit_code;
  std::string line;
  Words said;
};

/// Runs each of them in `folder`.
inline void expect_refused(const std::vector<Refusal>& refusals, const fs::path& folder = ".") {
  for (const Refusal& each : refusals) {
    SCOPED_TRACE(each.line);
    expect_infer_fails(words_of(each.line), each.exit_code, each.said, {.directory = folder});
  }
}

/// What a command line prints with --json: an object, or an array of its lines' objects.
inline json json_of(const std::string& line, const ProgramOptions& options = {}) {
  const std::vector<json> lines = infer_json(words_of(line), options);
  return lines.size() == 1 ? lines[0] : json(lines);
}

/// Whether all of `part` is in `whole`, whose objects may have more keys.
inline bool holds(const json& whole, const json& part) {
  if (part.is_array()) return whole.is_array() && std::ranges::equal(whole, part, holds);
  if (!part.is_object()) return whole == part;
  for (const auto& [key, value] : part.items())
    if (!whole.contains(key) || !holds(whole[key], value)) return false;
  return true;
}

/// A command line, and what is in its JSON, written as JSON.
using LineAndJson = std::pair<std::string, std::string>;

inline void expect_json(const std::vector<LineAndJson>& rows) {
  for (const auto& [line, part] : rows) {
    const json whole = json_of(line);
    EXPECT_TRUE(holds(whole, json::parse(part))) << line << "\nhas not " << part << "\n" << whole;
  }
}

/// Command lines that print the same, where one of them reads `input`.
struct Alike {
  std::string line, other;
  std::string input = {};
};

inline void expect_alike(const std::vector<Alike>& rows) {
  for (const Alike& row : rows) {
    const ProgramResult one = succeed(words_of(row.line), {.input = row.input});
    EXPECT_EQ(one.out, succeed(words_of(row.other), {.input = row.input}).out) << row.line;
    EXPECT_NE(one.out, "") << row.line;
  }
}

/// A command line, and what it says on stderr unless -q is given.
using LineAndNotes = std::pair<std::string, Words>;

inline void expect_noted(const std::vector<LineAndNotes>& rows) {
  for (const auto& [line, notes] : rows) {
    SCOPED_TRACE(line);
    expect_contains(succeed(words_of(line)).err, notes);
    EXPECT_EQ(succeed(words_of(line) + Words{"-q"}).err, "");
  }
}

/// A bundled model as sentence-transformers would save it.
class SentenceFolder : public TinyModel {
 public:
  SentenceFolder(int64_t max_tokens, const json& prompt)
      : TinyModel("sinusoidal",
                  {{"1_Pooling/config.json", {{"pooling_mode", "cls"}}},
                   {"sentence_bert_config.json", {{"max_seq_length", max_tokens}}},
                   {"config_sentence_transformers.json",
                    {{"prompts", {{"query", "query: "}}}, {"default_prompt_name", prompt}}}}) {
    write_modules({"Transformer", "Pooling", "Normalize"});
  }
};

inline Words file_names(const fs::path& folder) {
  Words names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

/// What stands in a page of --html.
inline json data_of_page(const fs::path& file) {
  const std::string page = read_text_file(file), mark = "id=\"data\">";
  const size_t from = page.find(mark) + mark.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from));
}

/// The tensors of a safetensors file.
inline std::vector<TestTensor> tensors_in(const fs::path& file) {
  std::vector<TestTensor> tensors;
  const auto opened = SafetensorsFile::open(file);
  for (const auto& [name, entry] : opened->entries()) {
    const auto* const data = reinterpret_cast<const char*>(entry.data);
    tensors.push_back(
        {name, entry.shape, entry.dtype, std::string(data, static_cast<size_t>(entry.num_bytes))});
  }
  return tensors;
}

/// Expects a saved tensor to hold these values.
inline void expect_saved(const SafetensorsFile& file, const std::string& name,
                         const std::vector<int64_t>& shape, std::span<const float> want) {
  ASSERT_TRUE(file.contains(name)) << name;
  const Tensor tensor = file.tensor(name);
  EXPECT_EQ(tensor.shape, shape) << name;
  const std::vector<float> got = tensor.to_float();
  ASSERT_EQ(got.size(), want.size()) << name;
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-5) << name << " " << i;
}

/// The numbers of a tensor of int32.
inline std::vector<int32_t> int32s(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsFile::Entry& entry = file.entries().at(name);
  EXPECT_EQ(entry.dtype, "I32") << name;
  std::vector<int32_t> values(entry.num_bytes / sizeof(int32_t));
  std::memcpy(values.data(), entry.data, values.size() * sizeof(int32_t));
  return values;
}

}  // namespace phasor
