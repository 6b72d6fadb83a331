// The cases of tests/cases: calls that every surface answers as the library does.
#pragma once

#include "tests/support/test.h"

namespace phasor {

/// A call.
struct Case {
  std::string model;  // one of CaseModels
  std::string call;   // "embed", "classify", "label", "rank", or "encode"
  json texts;         // strings, of rank() the query first; of classify() also pairs of them
  std::map<std::string, std::string> options;  // of TextOptions, as phasor/fields.h writes them
  std::vector<std::string> error;              // words of its message; none: the call has an answer

  std::string kinds() const { return options.contains("kinds") ? options.at("kinds") : "dense"; }
  uint32_t uses() const;
  json to_json() const;
};

/// Those of a call in tests/cases/CALL.jsonl, where a list of values stands for a case each; and
/// for each field a value that is none, one out of range, and where the call does not use it, any.
std::vector<Case> cases_of(const std::string& call);

/// Arrays by their names, as flat lists of numbers or strings; or the message of an error.
struct Answer {
  std::map<std::string, json> arrays;
  std::string error;

  json& list(const std::string& array) {
    return arrays.emplace(array, json::array()).first->second;
  }
  /// So many items of a text more.
  void add_count(const std::string& offsets, size_t count) {
    if (list(offsets).empty()) list(offsets).push_back(0);
    list(offsets).push_back(list(offsets).back().get<size_t>() + count);
  }
  void add(const std::string& array, const json& value) { list(array).push_back(value); }
  /// The float32 nearest to each number.
  void add_floats(const std::string& array, const json& values) {
    for (const json& value : values) add(array, value.get<float>());
  }
};

/// The models that cases name, and what the library answers of them.
class CaseModels {
 public:
  CaseModels();
  ~CaseModels();
  /// By the names that cases call them.
  const std::map<std::string, std::string>& folders() const;
  /// What the library answers, with these options where the case says nothing of them: those that
  /// a surface has by default, of the fields that the call uses.
  Answer answer(Case one, const std::map<std::string, std::string>& presets = {});

 private:
  struct Folders;
  const std::unique_ptr<const Folders> folders_;
  std::map<std::string, Encoder> encoders_;
};

/// Expects every array of `got` to be one of `want`, or both to be errors with the case's words.
/// `words`: what the surface may say instead of all these. `error`: by which floats may differ.
void expect_answer(const Case& one, const Answer& want, const Answer& got,
                   const std::vector<std::string>& words = {}, float error = 0);

}  // namespace phasor
