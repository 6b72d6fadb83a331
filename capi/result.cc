// The arrays and strings of a result.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capi/boundary.h"
#include "phasor/errors.h"

void phasor_result::borrow(const std::string& name, int64_t text, phasor_array array) {
  if (arrays.lower_bound({name, INT64_MIN}) == arrays.upper_bound({name, INT64_MAX})) {
    names.push_back(name);
  }
  arrays.insert_or_assign({name, text}, array);
}

extern "C" {

using namespace phasor::internal;  // NOLINT

phasor_status phasor_result_array(const phasor_result* result, const char* name, int64_t text,
                                  phasor_array* array) {
  return guarded([&] {
    require(result, "the result");
    require(name, "the name of the array");
    require(array, "the place for the array");
    const auto found = result->arrays.find({name, text});
    if (found != result->arrays.end()) {
      *array = found->second;
      return;
    }
    std::string why = fmt::format("; there are: {}", fmt::join(result->names, ", "));
    if (result->arrays.contains({name, -1})) why = ", but of all texts: give -1 as the text";
    if (result->arrays.contains({name, 0})) why = ", but of each text that was run: give 0, 1, …";
    throw phasor::Error(phasor::ErrorCode::kNotFound,
                        fmt::format("the result has no array '{}' of {}{}", name,
                                    text < 0 ? "all texts" : fmt::format("text {}", text), why));
  });
}

const char* phasor_result_array_name(const phasor_result* result, int64_t i) {
  const bool there = result != nullptr && i >= 0 && i < std::ssize(result->names);
  return there ? result->names[i].c_str() : nullptr;
}

const char* phasor_result_string(const phasor_result* result, const char* name, int64_t i,
                                 int64_t* size) {
  if (result == nullptr || name == nullptr) return nullptr;
  const auto found = result->strings.find(name);
  if (found == result->strings.end() || i < 0 || i >= std::ssize(found->second)) return nullptr;
  if (size != nullptr) *size = std::ssize(found->second[i]);
  return found->second[i].c_str();
}

void phasor_result_free(phasor_result* result) { delete result; }

}  // extern "C"
