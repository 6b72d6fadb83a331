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

  phasor_classify_options options = {.size = sizeof options, .max_tokens = 3};
  OK(phasor_classify(encoder, TEXTS("ab", "ab"), TEXTS("cd", "c"), NULL, &result));
  CHECK(int64s(result, "num_tokens")[0] == 7 && int64s(result, "num_tokens")[1] == 6);
  phasor_result_free(result);
  OK(phasor_classify(encoder, TEXTS("abcd"), NULL, &options, &result));
  CHECK(int64s(result, "num_tokens")[0] == 3 && int64s(result, "dropped_tokens")[0] == 3);
  phasor_result_free(result);
  OK(phasor_classify(encoder, &(phasor_texts){NULL, NULL, 0}, NULL, NULL, &result));
  CHECK(array(result, "logits").shape[0] == 0 && array(result, "logits").shape[1] == 2);
  phasor_result_free(result);

  options.overflow = PHASOR_OVERFLOW_ERROR;
  FAILS(PHASOR_TOO_LONG, "", phasor_classify(encoder, TEXTS("abcd"), NULL, &options, &none));
  options.overflow = 7;
  REFUSES("overflow", phasor_classify(encoder, kTwo, NULL, &options, &none));
  REFUSES("", phasor_classify(encoder, TEXTS("a", "b", "c"), TEXTS("a", "b"), NULL, &none));
  REFUSES("NULL", phasor_classify(encoder, NULL, NULL, NULL, &none));
  REFUSES("NULL", phasor_classify(NULL, kTwo, NULL, NULL, &none));
  REFUSES("NULL", phasor_classify(encoder, kTwo, NULL, NULL, NULL));
  phasor_retrieval_options sparse = {.size = sizeof sparse};
  FAILS(PHASOR_UNSUPPORTED, "SpladePooling", phasor_embed_sparse(encoder, kTwo, &sparse, &none));
  sparse.overflow = 7;
  REFUSES("overflow", phasor_embed_sparse(encoder, kTwo, &sparse, &none));
  REFUSES("NULL", phasor_embed_sparse(NULL, kTwo, NULL, &none));
  REFUSES("overflow", phasor_embed_tokens(encoder, kTwo, &sparse, &none));
  sparse.overflow = 0;
  FAILS(PHASOR_UNSUPPORTED, "ColBERT", phasor_embed_tokens(encoder, kTwo, &sparse, &none));
  sparse.offset_unit = 3;
  REFUSES("offset", phasor_embed_tokens(encoder, kTwo, &sparse, &none));
  REFUSES("NULL", phasor_embed_tokens(NULL, kTwo, NULL, &none));
  sparse.offset_unit = 0;
  FAILS(PHASOR_UNSUPPORTED, "SpladePooling", phasor_embed_all(encoder, kTwo, 7, &sparse, &none));
  REFUSES("kinds", phasor_embed_all(encoder, kTwo, 0, &sparse, &none));
  REFUSES("kinds", phasor_embed_all(encoder, kTwo, 16, &sparse, &none));
  REFUSES("NULL", phasor_embed_all(NULL, kTwo, 1, NULL, &none));
  phasor_label_options how = {.size = sizeof how};
  FAILS(PHASOR_UNSUPPORTED, "TokenClassification", phasor_label_tokens(encoder, kTwo, &how, &none));
  how.aggregation = 5;
  REFUSES("aggregation", phasor_label_tokens(encoder, kTwo, &how, &none));
  REFUSES("NULL", phasor_label_tokens(NULL, kTwo, NULL, &none));
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
  for (int i = 0; i < 3; ++i)
    CHECK(floats(ranked, "scores")[i] == floats(classified, "probabilities")[i]);
  FREE(ranked, classified);
  phasor_encoder_free(encoder);
}

/// One kind alone: the arrays of phasor_embed_all() without a prefix.
static void test_kinds(const fixture* f) {
  phasor_encoder* const encoder = encoder_of(f->kinds);
  phasor_retrieval_options how = {.size = sizeof how, .offset_unit = PHASOR_OFFSETS_IN_BYTES};
  phasor_result *all = NULL, *sparse = NULL, *tokens = NULL, *dense = NULL, *states = NULL;
  OK(phasor_embed_all(encoder, kTwo, 15, &how, &all));
  OK(phasor_embed(encoder, kTwo, NULL, &dense));
  OK(phasor_embed_sparse(encoder, kTwo, NULL, &sparse));
  OK(phasor_embed_tokens(encoder, kTwo, &how, &tokens));
  CHECK(same(all, dense, "vectors") && same(all, dense, "num_tokens"));
  CHECK(same_array(array(all, "sparse_offsets"), array(sparse, "offsets")));
  CHECK(same_array(array(all, "sparse_indices"), array(sparse, "indices")));
  CHECK(same_array(array(all, "sparse_values"), array(sparse, "values")));
  CHECK(same_array(array(all, "token_vectors"), array(tokens, "vectors")));
  CHECK(same_array(array(all, "token_offsets"), array(tokens, "offsets")));
  CHECK(same(all, tokens, "token_ids"));
  CHECK(same_array(array(all, "token_spans"), array(tokens, "spans")));
  CHECK(num_elements(array(sparse, "values")) > 0 && num_elements(array(tokens, "spans")) > 0);
  OK(phasor_encode(encoder, kTwo, NULL, &states));
  CHECK(same_array(array(all, "state_vectors"), array(states, "hidden")));
  CHECK(same_array(array(all, "state_offsets"), array(states, "offsets")));
  CHECK(same_array(array(all, "state_ids"), array(states, "token_ids")));
  CHECK(array(all, "state_spans").shape[0] == array(states, "token_ids").shape[0]);
  FREE(all, sparse, tokens, dense, states);
  phasor_encoder_free(encoder);
}

void test_heads(const fixture* f) {
  test_classifier(f);
  test_reranker(f);
  test_kinds(f);
}
