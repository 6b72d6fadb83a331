// Classification heads.
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
  CHECK(int64s(result, "num_tokens")[0] == 4 && int64s(result, "invalid_bytes")[2] == 1);
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
  REFUSES("NULL", phasor_classify(encoder, NULL, NULL, NULL, &none));
  REFUSES("NULL", phasor_classify(NULL, kTwo, NULL, NULL, &none));
  REFUSES("NULL", phasor_classify(encoder, kTwo, NULL, NULL, NULL));
  FAILS(PHASOR_UNSUPPORTED, "SpladePooling",
        phasor_embed(encoder, kTwo, SET("kinds", "sparse"), &none));
  FAILS(PHASOR_UNSUPPORTED, "ColBERT", phasor_embed(encoder, kTwo, SET("kinds", "tokens"), &none));
  FAILS(PHASOR_UNSUPPORTED, "TokenClassification", phasor_label(encoder, kTwo, NULL, &none));
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

void test_heads(const fixture* f) {
  test_classifier(f);
  test_reranker(f);
}
