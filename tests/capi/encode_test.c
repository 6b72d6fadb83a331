// Encoders and their runs.
#include <stdlib.h>
#include <string.h>

#include "check.h"

void test_encoders(const fixture* f) {
  phasor_encoder* encoder = NULL;
  phasor_encoder_options options = {.size = sizeof options, .threads = 2, .precision = "auto"};
  OK(phasor_encoder_create(f->model, &options, &encoder));
  CHECK(strstr(phasor_encoder_info(encoder), "{\"threads\":2,\"precision\":\"") != NULL);
  CHECK(strstr(phasor_encoder_info(encoder), "auto") == NULL);
  phasor_encoder_free(encoder);
  CHECK(strstr(phasor_encoder_info(f->encoder), "\"precision\":\"f32\"") != NULL);
  CHECK(strstr(phasor_encoder_info(f->encoder), "\"max_tokens\":") != NULL);
  CHECK(phasor_encoder_info(NULL) == NULL);
  encoder = NULL;
  options.precision = "f16";
  REFUSES("precision \"f16\"; there are: f32", phasor_encoder_create(f->model, &options, &encoder));
  options = (phasor_encoder_options){.size = sizeof options, .kernels = "theirs"};
  REFUSES("kernels \"theirs\"", phasor_encoder_create(f->model, &options, &encoder));
  options = (phasor_encoder_options){.size = sizeof options, .threads = -1};
  REFUSES("-1", phasor_encoder_create(f->model, &options, &encoder));
  CHECK(encoder == NULL);
  const phasor_encoder_options kinds[] = {
      {.precision = "bf16"}, {.precision = "int8"}, {.kernels = "own"}, {.kernels = "onednn"}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
    options = kinds[i];
    options.size = sizeof options;
    options.threads = 1;
    OK(phasor_encoder_create(f->model, &options, &encoder));
    const char* const word = options.precision != NULL ? options.precision : options.kernels;
    CHECK(strstr(phasor_encoder_info(encoder), word) != NULL);
    phasor_result_free(encode(encoder, kTwo, NULL));
    phasor_encoder_free(encoder);
  }
}

/// The same from texts and from their ids.
void test_same_bits(const fixture* f) {
  phasor_result* const expected = encode(f->encoder, kTwo, NULL);
  const int64_t* const offsets = int64s(expected, "offsets");
  const phasor_array hidden = array(expected, "hidden");
  CHECK(hidden.num_dims == 2 && hidden.shape[0] == offsets[2] && hidden.shape[1] == 128);
  phasor_result* by_ids = NULL;
  OK(phasor_encode_ids(f->encoder, int32s(expected, "token_ids"), offsets, 2, NULL, &by_ids));
  for (int64_t i = 0; phasor_result_array_name(expected, i) != NULL; ++i)
    CHECK(same(expected, by_ids, phasor_result_array_name(expected, i)));
  FREE(expected, by_ids);
}

void test_ids_that_cannot_be(const fixture* f) {
  const int32_t ids[] = {1, 2, 3};
  phasor_result* result = NULL;
  const struct {
    int64_t offsets[4];
    int64_t num_texts;
    phasor_status status;
  } cases[] = {{{0, 3}, 1, PHASOR_OK},
               {{0, 3}, 0, PHASOR_INVALID_ARGUMENT},
               {{0, 3}, -1, PHASOR_INVALID_ARGUMENT},
               {{0, 3}, INT64_MAX, PHASOR_INVALID_ARGUMENT},
               {{0, -1}, 1, PHASOR_INVALID_ARGUMENT},
               {{0, INT64_MAX}, 1, PHASOR_INVALID_ARGUMENT},
               {{1, 3}, 1, PHASOR_INVALID_ARGUMENT},
               {{0, 5, 3}, 2, PHASOR_INVALID_ARGUMENT},
               {{0, -1, 3}, 2, PHASOR_INVALID_ARGUMENT},
               {{0, 2, 1, 3}, 3, PHASOR_INVALID_ARGUMENT},
               {{0, 3, 3}, 2, PHASOR_EMPTY_TEXT},
               {{0, 0}, 1, PHASOR_EMPTY_TEXT}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    FAILS(cases[i].status, "",
          phasor_encode_ids(f->encoder, ids, cases[i].offsets, cases[i].num_texts, NULL, &result));
    CHECK((result != NULL) == (cases[i].status == PHASOR_OK));
    phasor_result_free(result);
    result = NULL;
  }
  const int64_t offsets[] = {0, 1};
  REFUSES("8192", phasor_encode_ids(f->encoder, (int32_t[]){8192}, offsets, 1, NULL, &result));
  REFUSES("-1", phasor_encode_ids(f->encoder, (int32_t[]){-1}, offsets, 1, NULL, &result));
  REFUSES("", phasor_encode(f->encoder, &(phasor_texts){NULL, NULL, 0}, NULL, &result));
  CHECK(result == NULL);
}

void test_memory_of_the_caller_states(const fixture* f) {
  phasor_result* const expected = encode(f->encoder, kTwo, NULL);
  const int64_t size = num_elements(array(expected, "hidden"));
  float* const memory = malloc(sizeof(float) * (size_t)size);
  phasor_run_options options = {.size = sizeof options, .hidden = memory, .hidden_size = size};
  phasor_result* const result = encode(f->encoder, kTwo, &options);
  CHECK(array(result, "hidden").data == memory && same(result, expected, "hidden"));
  phasor_result_free(result);
  CHECK(memcmp(memory, floats(expected, "hidden"), sizeof(float) * (size_t)size) == 0);
  phasor_result* none = NULL;
  const int64_t wrong[] = {0, size - 1, -size};
  for (size_t i = 0; i < 3; ++i) {
    options.hidden_size = wrong[i];
    REFUSES("", phasor_encode(f->encoder, kTwo, &options, &none));
  }
  options.hidden = NULL;
  options.hidden_size = size;
  REFUSES("NULL", phasor_encode(f->encoder, kTwo, &options, &none));
  CHECK(none == NULL);
  phasor_result_free(expected);
  free(memory);
}

void test_cut_residuals(const fixture* f) {
  const phasor_residual_cut both[] = {{3, NULL}}, each[] = {{3, "mlp"}, {3, "attn"}};
  phasor_run_options options = {.size = sizeof options, .cut_residuals = both};
  phasor_result* const whole = encode(f->encoder, kTwo, &options);  // num_cut_residuals is 0
  options.num_cut_residuals = 1;
  phasor_result* const at_once = encode(f->encoder, kTwo, &options);
  options.cut_residuals = each;
  options.num_cut_residuals = 2;
  phasor_result* const one_by_one = encode(f->encoder, kTwo, &options);
  CHECK(same(at_once, one_by_one, "hidden") && !same(at_once, whole, "hidden"));
  FREE(whole, at_once, one_by_one);
  phasor_result* none = NULL;
  const phasor_residual_cut wrong[] = {{6, "both"}, {0, ""}, {0, "ffn"}};
  for (size_t i = 0; i < 4; ++i) {
    options.cut_residuals = &wrong[i % 3];
    options.num_cut_residuals = i == 3 ? -1 : 1;
    REFUSES(i == 2 ? "\"ffn\"; there are: attn, mlp" : "",
            phasor_encode(f->encoder, kTwo, &options, &none));
  }
  CHECK(none == NULL);
}

void test_token_types(const fixture* f) {
  phasor_encoder* const encoder = encoder_of(f->reranker);
  const int32_t ids[] = {2, 5, 3, 6, 3}, types[] = {0, 0, 0, 1, 1};
  const int64_t offsets[] = {0, 5};
  phasor_run_options options = {.size = sizeof options};
  phasor_result *without = NULL, *with = NULL;
  OK(phasor_encode_ids(encoder, ids, offsets, 1, &options, &without));
  options.num_token_types = 5;
  options.token_types = types;
  OK(phasor_encode_ids(encoder, ids, offsets, 1, &options, &with));
  CHECK(!same(without, with, "hidden"));
  FREE(without, with);
  phasor_result* none = NULL;
  const int64_t wrong[] = {0, 4, -5};
  for (size_t i = 0; i < 3; ++i) {
    options.num_token_types = wrong[i];
    REFUSES("", phasor_encode_ids(encoder, ids, offsets, 1, &options, &none));
  }
  CHECK(none == NULL);
  phasor_encoder_free(encoder);
}

void test_stop(const fixture* f) {
  phasor_stop* stop = NULL;
  OK(phasor_stop_create(&stop));
  phasor_run_options options = {.size = sizeof options, .stop = stop};
  phasor_result_free(encode(f->encoder, kTwo, &options));
  phasor_stop_request(stop);
  phasor_result* none = NULL;
  for (int i = 0; i < 2; ++i)
    FAILS(PHASOR_CANCELLED, "", phasor_encode(f->encoder, kTwo, &options, &none));
  const phasor_text_options texts = {.size = sizeof texts, .stop = stop};
  FAILS(PHASOR_CANCELLED, "", phasor_embed(f->encoder, kTwo, &texts, &none));
  FAILS(PHASOR_CANCELLED, "", phasor_rank(f->encoder, TEXTS("a"), kTwo, &texts, &none));
  CHECK(none == NULL);
  phasor_stop_free(stop);
  phasor_result_free(encode(f->encoder, kTwo, NULL));
}
