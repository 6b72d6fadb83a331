// Classification heads.
#include "check.h"

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
