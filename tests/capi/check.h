// What the tests in C share: checks that go on, and short ways to make and compare things.
#ifndef PHASOR_TESTS_CAPI_CHECK_H_
#define PHASOR_TESTS_CAPI_CHECK_H_

#include <phasor/phasor_c.h>

void check_at(const char* file, int line, const char* what, int holds);
/// Checks the status; if the call failed, also that its message is one line with `words`.
void check_status_at(const char* file, int line, const char* call, phasor_status status,
                     phasor_status want, const char* words);

#define CHECK(...) check_at(__FILE__, __LINE__, #__VA_ARGS__, (__VA_ARGS__) ? 1 : 0)
#define OK(call) check_status_at(__FILE__, __LINE__, #call, call, PHASOR_OK, "")
#define FAILS(status, words, call) check_status_at(__FILE__, __LINE__, #call, call, status, words)
/// The usual failure.
#define REFUSES(words, call) FAILS(PHASOR_INVALID_ARGUMENT, words, call)

/// The number of failed checks so far.
extern int num_failures;

/// const phasor_texts*, each ended by a NUL.
#define TEXTS(...)                                                 \
  (&(const phasor_texts){(const char* const[]){__VA_ARGS__}, NULL, \
                         sizeof((const char* const[]){__VA_ARGS__}) / sizeof(char*)})

/// const phasor_text_options* with settings, names and values by turns.
#define SET(...)                                                     \
  (&(const phasor_text_options){.size = sizeof(phasor_text_options), \
                                .settings = (const char* const[]){__VA_ARGS__, NULL}})

/// The array of all texts, or of one; ends the program if there is none.
phasor_array array(const phasor_result* result, const char* name);
phasor_array array_of_text(const phasor_result* result, const char* name, int64_t text);
/// Frees results.
void free_results(phasor_result* const* results, size_t count);
#define FREE(...)                                     \
  free_results((phasor_result* const[]){__VA_ARGS__}, \
               sizeof((phasor_result* const[]){__VA_ARGS__}) / sizeof(phasor_result*))
const float* floats(const phasor_result* result, const char* name);
const int32_t* int32s(const phasor_result* result, const char* name);
const int64_t* int64s(const phasor_result* result, const char* name);

int64_t num_elements(phasor_array array);
/// Type, shape and every bit.
int same_array(phasor_array a, phasor_array b);
int same(const phasor_result* a, const phasor_result* b, const char* name);
int close_to(double a, double b);  ///< within float32's rounding

/// What most tests run on.
typedef struct fixture {
  phasor_model* model;  ///< "sinusoidal"
  phasor_encoder* encoder;
  const char* reranker;    ///< folders of a BERT with one label, "relevant", …
  const char* classifier;  ///< … and with two, "bad" and "good"
  const char* links;       ///< of links to the reranker's files
} fixture;

/// "Tom bit a dog." and a longer text.
extern const phasor_texts* const kTwo;
/// More than 128 tokens.
extern const phasor_texts* const kLong;

phasor_model* load(const char* folder_or_name);
phasor_encoder* encoder_of(const char* folder_or_name);
/// Encodes texts; the call must succeed.
phasor_result* encode(phasor_encoder* encoder, const phasor_texts* texts,
                      const phasor_run_options* options);

// The tests of all sources.
// clang-format off
#define FOR_EACH_TEST(DO) \
  DO(models) DO(structs) DO(copy) DO(links) DO(hook_names) DO(tensors) DO(folders) \
  DO(arrays_and_strings) DO(sizes_and_bytes) DO(options) DO(pairs) DO(pieces) \
  DO(texts_that_cannot_be) DO(encoders) DO(same_bits) DO(ids_that_cannot_be) \
  DO(memory_of_the_caller_states) DO(cut_residuals) DO(token_types) DO(stop) DO(tables_and_ids) \
  DO(positions_that_cannot_be) DO(vectors) DO(recording) DO(observing) DO(ending) DO(changing) \
  DO(smaller_vectors) DO(settings) DO(memory_of_the_caller_vectors) DO(progress) \
  DO(rank_by_vectors) DO(mlm) DO(heads) DO(observe) DO(texts_of_one_run) DO(means_and_two_runs) \
  DO(ends_and_refusals)
// clang-format on
#define DECLARE_TEST(name) void test_##name(const fixture* f);
FOR_EACH_TEST(DECLARE_TEST)
void test_before_any_failure(void);

#endif
