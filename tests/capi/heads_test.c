// Classification heads.
#include <math.h>
#include <string.h>

#include "check.h"

static void test_classifier(const fixture* f) {
  phasor_encoder* const encoder = encoder_of(f->classifier);
  phasor_result *result = NULL, *none = NULL;
  OK(phasor_classify(encoder, TEXTS("ab", "cd ef", "gh\xff"), NULL, NULL, &result));
  const phasor_array logits = array(result, "logits");
  CHECK(logits.num_dims == 2 && logits.shape[0] == 3 && logits.shape[1] == 2);
  CHECK(strcmp(phasor_result_string(result, "labels", 0, NULL), "bad") == 0);
  CHECK(strcmp(phasor_result_string(result, "labels", 1, NULL), "good") == 0);
  CHECK(phasor_result_string(result, "labels", 2, NULL) == NULL);
  for (int64_t i = 0; i < 3; ++i) {  // softmax
    const float* const l = floats(result, "logits") + 2 * i;
    CHECK(close_to(floats(result, "probabilities")[2 * i], 1 / (1 + exp((double)l[1] - l[0]))));
  }
  CHECK(int64s(result, "num_tokens")[0] == 4 && int64s(result, "invalid_bytes")[2] == 1);
  phasor_result_free(result);

  OK(phasor_classify(encoder, TEXTS("ab", "ab"), TEXTS("cd", "c"), NULL, &result));
  CHECK(int64s(result, "num_tokens")[0] == 7 && int64s(result, "num_tokens")[1] == 6);
  phasor_result_free(result);
  OK(phasor_classify(encoder, TEXTS("abcd"), NULL, SET("max_tokens", "3"), &result));
  CHECK(int64s(result, "num_tokens")[0] == 3 && int64s(result, "dropped_tokens")[0] == 3);
  phasor_result_free(result);
  OK(phasor_classify(encoder, &(phasor_texts){NULL, NULL, 0}, NULL, NULL, &result));
  CHECK(array(result, "logits").shape[0] == 0 && array(result, "logits").shape[1] == 2);
  phasor_result_free(result);

  FAILS(PHASOR_TOO_LONG, "",
        phasor_classify(encoder, TEXTS("abcd"), NULL, SET("max_tokens", "3", "overflow", "error"),
                        &none));
  REFUSES("does not use pooling",
          phasor_classify(encoder, kTwo, NULL, SET("pooling", "cls"), &none));
  float memory[4];
  const phasor_text_options output = {.size = sizeof output, .output = memory, .output_size = 4};
  REFUSES("does not use output", phasor_classify(encoder, kTwo, NULL, &output, NULL));
  REFUSES("", phasor_classify(encoder, TEXTS("a", "b", "c"), TEXTS("a", "b"), NULL, &none));
  REFUSES("NULL", phasor_classify(encoder, NULL, NULL, NULL, &none));
  REFUSES("NULL", phasor_classify(NULL, kTwo, NULL, NULL, &none));
  REFUSES("NULL", phasor_classify(encoder, kTwo, NULL, NULL, NULL));
  FAILS(PHASOR_UNSUPPORTED, "SpladePooling",
        phasor_embed(encoder, kTwo, SET("kinds", "sparse"), &none));
  FAILS(PHASOR_UNSUPPORTED, "ColBERT", phasor_embed(encoder, kTwo, SET("kinds", "tokens"), &none));
  REFUSES("kinds: ", phasor_embed(encoder, kTwo, SET("kinds", "dense,"), &none));
  FAILS(PHASOR_UNSUPPORTED, "TokenClassification", phasor_label(encoder, kTwo, NULL, &none));
  REFUSES("aggregation: ", phasor_label(encoder, kTwo, SET("aggregation", "most"), &none));
  REFUSES("NULL", phasor_label(NULL, kTwo, NULL, &none));
  FAILS(PHASOR_INVALID_MODEL, "one label", phasor_rank(encoder, TEXTS("a"), kTwo, NULL, &none));
  CHECK(none == NULL);
  phasor_encoder_free(encoder);
}

static void test_reranker(const fixture* f) {
  phasor_encoder* const encoder = encoder_of(f->reranker);
  const phasor_texts* const documents = TEXTS("one dog", "two cats", "c");
  phasor_result *ranked = NULL, *classified = NULL;
  OK(phasor_rank(encoder, TEXTS("ab"), documents, NULL, &ranked));
  OK(phasor_classify(encoder, TEXTS("ab"), documents, NULL, &classified));  // one for all
  CHECK(array(ranked, "order").shape[0] == 3 && array(ranked, "scores").num_dims == 1);
  for (int i = 0; i < 3; ++i) {
    CHECK(floats(ranked, "scores")[i] == floats(classified, "probabilities")[i]);
    CHECK(floats(ranked, "logits")[i] == floats(classified, "logits")[i]);
  }
  FREE(ranked, classified);
  phasor_encoder_free(encoder);
}

/// Several kinds from one run, and each by itself.
static void test_kinds(const fixture* f) {
  static const char* const kinds[] = {"dense", "sparse", "tokens", "states"};
  static const char* const prefixes[] = {"dense", "sparse_", "token_", "state_"};
  phasor_encoder* const encoder = encoder_of(f->kinds);
  phasor_result *all = NULL, *one = NULL, *encoded = NULL;
  OK(phasor_embed(encoder, kTwo, SET("kinds", "dense,sparse,tokens,states", "offset_unit", "bytes"),
                  &all));
  int compared = 0;
  for (int k = 0; k < 4; ++k) {
    OK(k < 2 ? phasor_embed(encoder, kTwo, SET("kinds", kinds[k]), &one)
             : phasor_embed(encoder, kTwo, SET("kinds", kinds[k], "offset_unit", "bytes"), &one));
    const char* name;
    for (int64_t i = 0; (name = phasor_result_array_name(one, i)) != NULL; ++i) {
      compared += strncmp(name, prefixes[k], strlen(prefixes[k])) == 0;
      CHECK(same(all, one, name));
    }
    phasor_result_free(one);
  }
  CHECK(compared == 1 + 3 + 4 + 4);
  OK(phasor_encode(encoder, kTwo, NULL, &encoded));
  CHECK(same_array(array(all, "state_vectors"), array(encoded, "hidden")));
  CHECK(same_array(array(all, "state_offsets"), array(encoded, "offsets")));
  CHECK(same_array(array(all, "state_ids"), array(encoded, "token_ids")));
  FREE(all, encoded);
  REFUSES("offset_unit", phasor_embed(encoder, kTwo, SET("offset_unit", "bytes"), &one));
  phasor_encoder_free(encoder);
}

void test_heads(const fixture* f) {
  test_classifier(f);
  test_reranker(f);
  test_kinds(f);
}
