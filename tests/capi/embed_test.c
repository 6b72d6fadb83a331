// Vectors of texts, what is ranked by them, and the heads.
#include <stdlib.h>
#include <string.h>

#include "check.h"

static phasor_result* embed(const fixture* f, const phasor_texts* texts,
                            const phasor_text_options* options) {
  phasor_result* result = NULL;
  OK(phasor_embed(f->encoder, texts, options, &result));
  return result;
}

static int same_vectors(phasor_result* a, phasor_result* b) {
  const int equal = same(a, b, "dense");
  FREE(a, b);
  return equal;
}

void test_smaller_vectors(const fixture* f) {
  (void)f;
  const float vectors[] = {0, 1, -2, 3, 4, -5, 6, 7, 8, 9};  // [1, 10], or [2, 5]
  const float least[] = {-1, 0, -2, 0, 0}, most[] = {1, 255, 2, 9, 9};
  uint8_t bytes[20] = {0};
  OK(phasor_quantize(vectors, 1, 10, "ubinary", NULL, NULL, bytes, 2));
  CHECK(bytes[0] == 0x5B && bytes[1] == 0xC0);  // 0101 1011, 11
  OK(phasor_quantize(vectors, 2, 5, "uint8", least, most, bytes, 10));
  CHECK(bytes[0] == 127 && bytes[1] == 1 && bytes[2] == 0 && bytes[5] == 0);
  OK(phasor_quantize(NULL, 0, 5, "ubinary", NULL, NULL, NULL, 0));
  REFUSES("do not fill", phasor_quantize(vectors, 1, 10, "ubinary", NULL, NULL, bytes, 3));
  REFUSES("do not fill", phasor_quantize(vectors, -1, 10, "ubinary", NULL, NULL, bytes, -2));
  REFUSES("ubinary", phasor_quantize(vectors, 1, 10, "bits", NULL, NULL, bytes, 2));
  REFUSES("range", phasor_quantize(vectors, 2, 5, "int8", least, NULL, bytes, 10));
  REFUSES("width", phasor_quantize(vectors, 1, 0, "f16", NULL, NULL, bytes, 0));
  REFUSES("vectors", phasor_quantize(NULL, 1, 2, "f16", NULL, NULL, bytes, 4));
  REFUSES("output", phasor_quantize(vectors, 1, 2, "f16", NULL, NULL, NULL, 4));
}

void test_settings(const fixture* f) {
  CHECK(same_vectors(embed(f, kTwo, SET(NULL)), embed(f, kTwo, NULL)));
  const phasor_positions none = {.size = sizeof none, .kind = "none"};
  const phasor_text_options without = {.size = sizeof without, .positions = &none};
  CHECK(!same_vectors(embed(f, kTwo, &without), embed(f, kTwo, NULL)));
  phasor_result* const bytes = embed(f, TEXTS("dog\xff", ""), SET("pooling", "cls,mean"));
  const phasor_array dense = array(bytes, "dense");
  CHECK(dense.num_dims == 2 && dense.shape[0] == 2 && dense.shape[1] == 256);
  CHECK(int64s(bytes, "invalid_bytes")[0] == 1 && int64s(bytes, "invalid_bytes")[1] == 0);
  phasor_result_free(bytes);
  phasor_result* result = NULL;
  const struct {
    const char *words, *name, *value;
  } wrong[] = {{"did you mean", "max_token", "3"},
               {"no setting", "positions", "none"},
               {"has no value", "prompt", NULL}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i)
    REFUSES(wrong[i].words,
            phasor_embed(f->encoder, kTwo, SET(wrong[i].name, wrong[i].value), &result));
  FAILS(PHASOR_TOO_LONG, "",
        phasor_embed(f->encoder, kTwo, SET("max_tokens", "3", "overflow", "error"), &result));
  CHECK(result == NULL);
}

void test_memory_of_the_caller_vectors(const fixture* f) {
  float memory[2 * 128];
  phasor_result* const expected = embed(f, kTwo, NULL);
  phasor_text_options options = {.size = sizeof options, .output = memory, .output_size = 256};
  phasor_result* const result = embed(f, kTwo, &options);
  CHECK(array(result, "dense").data == memory && same(result, expected, "dense"));
  memset(memory, 0, sizeof memory);
  OK(phasor_embed(f->encoder, kTwo, &options, NULL));
  CHECK(same(result, expected, "dense"));
  FREE(result, expected);
  phasor_result* none = NULL;
  const int64_t wrong[] = {0, 255, 257, -256};
  for (size_t i = 0; i < 4; ++i) {
    options.output_size = wrong[i];
    REFUSES("", phasor_embed(f->encoder, kTwo, &options, &none));
  }
  options = (phasor_text_options){.size = sizeof options, .output_size = 256};
  REFUSES("NULL", phasor_embed(f->encoder, kTwo, &options, &none));
  CHECK(none == NULL);
  // No texts, no vectors.
  options = (phasor_text_options){.size = sizeof options, .output = memory};
  OK(phasor_embed(f->encoder, &(phasor_texts){NULL, NULL, 0}, &options, NULL));
  OK(phasor_embed(f->encoder, &(phasor_texts){NULL, NULL, 0}, NULL, &none));
  CHECK(array(none, "dense").shape[0] == 0 && array(none, "dense").shape[1] == 128);
  CHECK(array(none, "num_tokens").shape[0] == 0);
  phasor_result_free(none);
}

typedef struct tally {
  int64_t calls, done, total, end_at;
  phasor_encoder* encoder;
  phasor_status inside;
} tally;

static int32_t progress(void* user, int64_t done, int64_t total) {
  tally* const t = user;
  phasor_result* result = NULL;
  ++t->calls;
  CHECK(done > t->done || t->calls == 1);
  t->done = done;
  t->total = total;
  t->inside = phasor_embed(t->encoder, kTwo, NULL, &result);
  phasor_result_free(result);
  return done >= t->end_at ? -1 : 0;
}

void test_progress(const fixture* f) {
  tally all = {.encoder = f->encoder, .end_at = 100}, stopped = {.encoder = f->encoder};
  phasor_text_options options = {.size = sizeof options, .progress = progress, .user = &all};
  phasor_result_free(embed(f, kTwo, &options));
  CHECK(all.calls >= 1 && all.done == 2 && all.total == 2 && all.inside == PHASOR_OK);
  options.user = &stopped;
  phasor_result* none = NULL;
  FAILS(PHASOR_CANCELLED, "progress", phasor_embed(f->encoder, kTwo, &options, &none));
  CHECK(stopped.calls == 1);
  stopped.calls = 0;
  FAILS(PHASOR_CANCELLED, "progress", phasor_rank(f->encoder, TEXTS("a"), kTwo, &options, &none));
  CHECK(stopped.calls == 1 && none == NULL);
}

void test_rank_by_vectors(const fixture* f) {
  phasor_result *result = NULL, *none = NULL;
  OK(phasor_rank(f->encoder, TEXTS("a"), &(phasor_texts){NULL, NULL, 0}, NULL, &result));
  CHECK(array(result, "order").shape[0] == 0 && array(result, "scores").shape[0] == 0);
  phasor_result_free(result);
  REFUSES("one query", phasor_rank(f->encoder, kTwo, kTwo, NULL, &none));
  FAILS(PHASOR_UNSUPPORTED, "head", phasor_classify(f->encoder, kTwo, NULL, NULL, &none));
  CHECK(none == NULL);
}

void test_mlm(const fixture* f) {
  enum { kVocabulary = 8192 };
  phasor_result* const states = encode(f->encoder, TEXTS("Tom bit a dog."), NULL);
  const float* const hidden = floats(states, "hidden");
  float* const logits = malloc(sizeof(float) * 3 * kVocabulary);
  float* const alone = logits + 2 * kVocabulary;  // of the second
  OK(phasor_mlm_logits(f->encoder, hidden + 128, 2, logits, 2 * kVocabulary));
  OK(phasor_mlm_logits(f->encoder, hidden + 128 * 2, 1, alone, kVocabulary));
  for (int64_t id = 0; id < kVocabulary; ++id) CHECK(close_to(logits[kVocabulary + id], alone[id]));
  CHECK(memcmp(logits, alone, sizeof(float) * kVocabulary) != 0);
  OK(phasor_mlm_logits(f->encoder, NULL, 0, NULL, 0));
  REFUSES("8192", phasor_mlm_logits(f->encoder, hidden, 2, logits, kVocabulary));
  REFUSES("8192", phasor_mlm_logits(f->encoder, hidden, 1, logits, kVocabulary + 1));
  REFUSES("", phasor_mlm_logits(f->encoder, hidden, -1, logits, -kVocabulary));
  phasor_encoder* const other = encoder_of(f->reranker);
  FAILS(PHASOR_UNSUPPORTED, "head", phasor_mlm_logits(other, hidden, 1, logits, 56));
  phasor_encoder_free(other);
  phasor_result_free(states);
  free(logits);
}

void test_heads(const fixture* f) {
  phasor_encoder* const encoder = encoder_of(f->classifier);
  phasor_result *result = NULL, *none = NULL;
  OK(phasor_classify(encoder, TEXTS("ab", "cd ef", "gh\xff"), NULL, NULL, &result));
  const phasor_array logits = array(result, "logits");
  CHECK(logits.num_dims == 2 && logits.shape[0] == 3 && logits.shape[1] == 2);
  CHECK(phasor_result_string(result, "labels", 2, NULL) == NULL);
  phasor_result_free(result);
  OK(phasor_classify(encoder, TEXTS("ab"), TEXTS("c", "d", "ef"), NULL, &result));  // one for all
  CHECK(array(result, "logits").shape[0] == 3 && int64s(result, "num_tokens")[2] == 7);
  phasor_result_free(result);
  OK(phasor_classify(encoder, &(phasor_texts){NULL, NULL, 0}, NULL, NULL, &result));
  CHECK(array(result, "logits").shape[0] == 0 && array(result, "logits").shape[1] == 2);
  phasor_result_free(result);
  FAILS(PHASOR_TOO_LONG, "",
        phasor_classify(encoder, TEXTS("abcd"), NULL, SET("max_tokens", "3", "overflow", "error"),
                        &none));
  float memory[4];
  const phasor_text_options output = {.size = sizeof output, .output = memory, .output_size = 4};
  REFUSES("does not use output", phasor_classify(encoder, kTwo, NULL, &output, NULL));
  REFUSES("", phasor_classify(encoder, TEXTS("a", "b", "c"), TEXTS("a", "b"), NULL, &none));
  FAILS(PHASOR_UNSUPPORTED, "SpladePooling",
        phasor_embed(encoder, kTwo, SET("kinds", "sparse"), &none));
  FAILS(PHASOR_UNSUPPORTED, "ColBERT", phasor_embed(encoder, kTwo, SET("kinds", "tokens"), &none));
  FAILS(PHASOR_UNSUPPORTED, "TokenClassification", phasor_label(encoder, kTwo, NULL, &none));
  FAILS(PHASOR_INVALID_MODEL, "one label", phasor_rank(encoder, TEXTS("a"), kTwo, NULL, &none));
  CHECK(none == NULL);
  phasor_encoder_free(encoder);
}
