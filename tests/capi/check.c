// Every function of the C interface, called from C.
//
//   capi_test RERANKER CLASSIFIER LINKS     three folders, which capi_folders makes
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int num_failures = 0;

#define LONG_LINE "the dog that bit Tom saw a cat that saw a dog that Tom had seen, and it ran; "
const phasor_texts* const kTwo = TEXTS("Tom bit a dog.", "A dog bit Tom, who had bitten it.");
const phasor_texts* const kLong = TEXTS(
    LONG_LINE LONG_LINE LONG_LINE LONG_LINE LONG_LINE LONG_LINE LONG_LINE LONG_LINE LONG_LINE);

void check_at(const char* file, int line, const char* what, int holds) {
  if (holds) return;
  ++num_failures;
  fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
}

void check_status_at(const char* file, int line, const char* call, phasor_status status,
                     phasor_status want, const char* words) {
  const char* const message = status == PHASOR_OK ? "" : phasor_error_message();
  const int as_wanted = status == want && strstr(message, words) != NULL &&
                        strchr(message, '\n') == NULL &&
                        (status == PHASOR_OK || message[0] != '\0');
  if (as_wanted) return;
  ++num_failures;
  fprintf(stderr, "%s:%d: %s\n  returned %d, not %d with '%s': '%s'\n", file, line, call, status,
          want, words, message);
}

phasor_array array_of_text(const phasor_result* result, const char* name, int64_t text) {
  phasor_array array;
  if (phasor_result_array(result, name, text, &array) == PHASOR_OK) return array;
  fprintf(stderr, "capi_test: %s\n", phasor_error_message());
  exit(1);
}

void free_results(phasor_result* const* results, size_t count) {
  for (size_t i = 0; i < count; ++i) phasor_result_free(results[i]);
}

phasor_array array(const phasor_result* result, const char* name) {
  return array_of_text(result, name, -1);
}

static const void* data_of_type(const phasor_result* result, const char* name, int32_t type) {
  const phasor_array found = array(result, name);
  CHECK(found.type == type);
  return found.data;
}

const float* floats(const phasor_result* result, const char* name) {
  return data_of_type(result, name, PHASOR_FLOAT32);
}
const int32_t* int32s(const phasor_result* result, const char* name) {
  return data_of_type(result, name, PHASOR_INT32);
}
const int64_t* int64s(const phasor_result* result, const char* name) {
  return data_of_type(result, name, PHASOR_INT64);
}

int64_t num_elements(phasor_array array) {
  int64_t count = 1;
  for (int32_t i = 0; i < array.num_dims; ++i) count *= array.shape[i];
  return count;
}

int same_array(phasor_array a, phasor_array b) {
  const size_t bytes = a.type == PHASOR_INT64 ? 8 : 4;
  return a.type == b.type && a.num_dims == b.num_dims &&
         memcmp(a.shape, b.shape, sizeof a.shape) == 0 &&
         memcmp(a.data, b.data, bytes * (size_t)num_elements(a)) == 0;
}

int same(const phasor_result* a, const phasor_result* b, const char* name) {
  return same_array(array(a, name), array(b, name));
}

int close_to(double a, double b) { return fabs(a - b) <= 1e-5 * (1 + fabs(b)); }

static void need(phasor_status status) {
  if (status == PHASOR_OK) return;
  fprintf(stderr, "capi_test: %s\n", phasor_error_message());
  exit(1);
}

phasor_model* load(const char* folder_or_name) {
  phasor_model* model = NULL;
  need(phasor_model_load(folder_or_name, NULL, &model));
  return model;
}

phasor_encoder* encoder_of(const char* folder_or_name) {
  phasor_model* const model = load(folder_or_name);
  phasor_encoder* encoder = NULL;
  need(phasor_encoder_create(
      model, &(phasor_encoder_options){.size = sizeof(phasor_encoder_options), .threads = 2},
      &encoder));
  phasor_model_free(model);
  return encoder;
}

phasor_result* encode(phasor_encoder* encoder, const phasor_texts* texts,
                      const phasor_run_options* options) {
  phasor_result* result = NULL;
  need(phasor_encode(encoder, texts, options, &result));
  return result;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: capi_test RERANKER CLASSIFIER LINKS\n");
    return 2;
  }
  test_before_any_failure();
  fixture f = {
      .model = load("sinusoidal"), .reranker = argv[1], .classifier = argv[2], .links = argv[3]};
  OK(phasor_encoder_create(f.model, NULL, &f.encoder));

#define RUN_TEST(name) test_##name(&f);
  FOR_EACH_TEST(RUN_TEST)

  phasor_model_free(f.model);
  phasor_encoder_free(f.encoder);
  if (num_failures > 0) fprintf(stderr, "capi_test: %d checks failed\n", num_failures);
  return num_failures > 0;
}
