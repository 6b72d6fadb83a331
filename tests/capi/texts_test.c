// Texts, their tokens, and what results hold.
#include <string.h>

#include "check.h"

static phasor_result* tokenize(const fixture* f, const phasor_texts* first,
                               const phasor_texts* second, const phasor_tokenize_options* options) {
  phasor_result* result = NULL;
  OK(phasor_tokenize(f->model, first, second, options, &result));
  return result;
}

void test_arrays_and_strings(const fixture* f) {
  phasor_result* const result = tokenize(f, kTwo, NULL, NULL);
  const phasor_array offsets = array(result, "offsets");
  const int64_t N = int64s(result, "offsets")[2];
  CHECK(offsets.num_dims == 1 && offsets.shape[0] == 3 && offsets.shape[1] == 0);
  CHECK(array(result, "token_ids").shape[0] == N);
  CHECK(int64s(result, "dropped_tokens")[1] == 0 && int64s(result, "invalid_bytes")[1] == 0);
  int64_t i = 0, size = -1;
  for (const char* piece; (piece = phasor_result_string(result, "pieces", i, &size)) != NULL; ++i)
    CHECK(size == (int64_t)strlen(piece));
  CHECK(i == N);
  CHECK(strcmp(phasor_result_string(result, "pieces", 0, NULL), "[CLS]") == 0);
  CHECK(phasor_result_string(result, "pieces", -1, NULL) == NULL);
  CHECK(phasor_result_string(result, "labels", 0, NULL) == NULL);
  CHECK(phasor_result_string(result, NULL, 0, NULL) == NULL);
  CHECK(phasor_result_string(NULL, "pieces", 0, NULL) == NULL);
  phasor_array found = {.num_dims = 77};
  int64_t names = 0;
  for (const char* name; (name = phasor_result_array_name(result, names)) != NULL; ++names)
    OK(phasor_result_array(result, name, -1, &found));
  CHECK(names == 4);
  CHECK(phasor_result_array_name(result, -1) == NULL && phasor_result_array_name(NULL, 0) == NULL);
  found.num_dims = 77;
  FAILS(PHASOR_NOT_FOUND, "dropped_tokens", phasor_result_array(result, "hidden", -1, &found));
  FAILS(PHASOR_NOT_FOUND, "text 0", phasor_result_array(result, "token_ids", 0, &found));
  CHECK(found.num_dims == 77);
  phasor_result_free(result);
}

void test_sizes_and_bytes(const fixture* f) {
  // The same texts, without their NULs.
  const char bytes[] = "Tom bit a dog.A dog bit Tom, who had bitten it.";
  const int64_t sizes[] = {14, 33};
  const phasor_texts sized = {(const char* const[]){bytes, bytes + 14}, sizes, 2};
  phasor_result* const a = tokenize(f, kTwo, NULL, NULL);
  phasor_result* const b = tokenize(f, &sized, NULL, NULL);
  CHECK(same(a, b, "token_ids") && same(a, b, "offsets"));
  FREE(a, b);
  // A NUL inside, and an empty text; bytes that are not UTF-8.
  const char with_nul[] = "a\0b";
  const phasor_texts odd = {(const char* const[]){with_nul, with_nul, "dog\xff\xfe"},
                            (const int64_t[]){3, 0, 5}, 3};
  phasor_result* const c = tokenize(f, &odd, NULL, NULL);
  const int64_t* const offsets = int64s(c, "offsets");
  CHECK(offsets[1] > 3);                // [CLS], more than "a", [SEP]
  CHECK(offsets[2] - offsets[1] == 2);  // [CLS] [SEP]
  CHECK(int64s(c, "invalid_bytes")[0] == 0 && int64s(c, "invalid_bytes")[2] == 2);
  phasor_result_free(c);
}

void test_options(const fixture* f) {
  phasor_tokenize_options options = {.size = sizeof options, .max_tokens = 4};
  phasor_result* const cut = tokenize(f, kTwo, NULL, &options);
  phasor_result* const whole = tokenize(f, kTwo, NULL, NULL);
  CHECK(int64s(cut, "offsets")[2] == 8);
  CHECK(int64s(cut, "dropped_tokens")[0] + 4 == int64s(whole, "offsets")[1]);
  CHECK(int32s(cut, "token_ids")[3] == int32s(cut, "token_ids")[7]);  // [SEP] stays
  FREE(cut, whole);
  options = (phasor_tokenize_options){.size = sizeof options, .offset_unit = "bytes"};
  phasor_result* const placed = tokenize(f, kTwo, NULL, &options);
  const phasor_array spans = array(placed, "spans");
  CHECK(spans.shape[0] == int64s(placed, "offsets")[2] && spans.shape[1] == 2);
  CHECK(int64s(placed, "spans")[2] == 0 && int64s(placed, "spans")[3] == 3);  // "Tom"
  phasor_result_free(placed);
  options.offset_unit = "words";
  phasor_result* none = NULL;
  REFUSES("offsets \"words\"", phasor_tokenize(f->model, kTwo, NULL, &options, &none));
  options = (phasor_tokenize_options){.size = sizeof options, .parse_special = 1};
  phasor_result* const parsed = tokenize(f, TEXTS("a [MASK]"), NULL, &options);
  phasor_result* const text = tokenize(f, TEXTS("a [MASK]"), NULL, NULL);
  CHECK(strcmp(phasor_result_string(parsed, "pieces", 2, NULL), "[MASK]") == 0);
  CHECK(int64s(parsed, "offsets")[1] == 4 && int64s(text, "offsets")[1] > 4);
  FREE(parsed, text);
}

void test_pairs(const fixture* f) {
  phasor_model* const bert = load(f->reranker);
  phasor_result* pairs = NULL;
  OK(phasor_tokenize(bert, TEXTS("ab", "c"), TEXTS("d", "ef"), NULL, &pairs));
  const int64_t* const offsets = int64s(pairs, "offsets");
  const int32_t* const types = int32s(pairs, "token_types");
  CHECK(offsets[1] == 6 && offsets[2] == 12);  // [CLS] a ##b [SEP] d [SEP]
  CHECK(types[0] == 0 && types[3] == 0 && types[4] == 1 && types[5] == 1);
  CHECK(types[8] == 0 && types[9] == 1);
  phasor_result* kept = pairs;
  REFUSES("2 first and 1 second", phasor_tokenize(bert, TEXTS("ab", "c"), TEXTS("d"), NULL, &kept));
  CHECK(kept == pairs);
  phasor_result_free(pairs);
  phasor_model_free(bert);
}

void test_pieces(const fixture* f) {
  phasor_result *tokens = NULL, *result = NULL;
  OK(phasor_tokenize(f->model, kTwo, NULL, NULL, &tokens));
  const int64_t n = array(tokens, "token_ids").shape[0];
  OK(phasor_pieces(f->model, int32s(tokens, "token_ids"), n, &result));
  for (int64_t i = 0; i < n; ++i)
    CHECK(strcmp(phasor_result_string(result, "pieces", i, NULL),
                 phasor_result_string(tokens, "pieces", i, NULL)) == 0);
  CHECK(phasor_result_string(result, "pieces", n, NULL) == NULL);
  FREE(result, tokens);
  result = NULL;
  const int32_t wrong[] = {-1, 8192};
  REFUSES("-1", phasor_pieces(f->model, wrong, 1, &result));
  REFUSES("8192", phasor_pieces(f->model, wrong + 1, 1, &result));
  REFUSES("-3", phasor_pieces(f->model, wrong, -3, &result));
  OK(phasor_pieces(f->model, NULL, 0, &result));
  phasor_result_free(result);
}

void test_texts_that_cannot_be(const fixture* f) {
  phasor_result* result = NULL;
  const char* const one[] = {"a"};
  REFUSES("-1", phasor_tokenize(f->model, &(phasor_texts){one, NULL, -1}, NULL, NULL, &result));
  REFUSES("NULL", phasor_tokenize(f->model, &(phasor_texts){NULL, NULL, 1}, NULL, NULL, &result));
  REFUSES("number of texts",
          phasor_tokenize(f->model, &(phasor_texts){one, NULL, INT64_MAX}, NULL, NULL, &result));
  REFUSES("texts 1 is NULL", phasor_tokenize(f->model, TEXTS("a", NULL), NULL, NULL, &result));
  const int64_t negative[] = {-5};
  REFUSES("-5", phasor_tokenize(f->model, &(phasor_texts){one, negative, 1}, NULL, NULL, &result));
  CHECK(result == NULL);
  OK(phasor_tokenize(f->model, &(phasor_texts){NULL, NULL, 0}, NULL, NULL, &result));
  CHECK(array(result, "offsets").shape[0] == 1 && array(result, "token_ids").shape[0] == 0);
  phasor_result_free(result);
}
