// Every function of the C interface, called from C.
//
//   capi_test RERANKER CLASSIFIER LINKS     three folders, which capi_folders makes
#include <stdio.h>

#include "check.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: capi_test RERANKER CLASSIFIER LINKS\n");
    return 2;
  }
  test_before_any_failure();
  fixture f = {
      .model = load("sinusoidal"), .reranker = argv[1], .classifier = argv[2], .links = argv[3]};
  OK(phasor_encoder_create(f.model, NULL, &f.encoder));

  test_models(&f);
  test_structs(&f);
  test_texts(&f);
  test_encode(&f);
  test_positions(&f);
  test_hooks(&f);
  test_embed(&f);
  test_heads(&f);
  test_observe(&f);

  phasor_model_free(f.model);
  phasor_encoder_free(f.encoder);
  if (num_failures > 0) fprintf(stderr, "capi_test: %d checks failed\n", num_failures);
  return num_failures > 0;
}
