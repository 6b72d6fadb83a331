// Compares the vectors of two sentences, in C.
#include <phasor/phasor_c.h>
#include <stdio.h>

static int failed(phasor_status status) {
  if (status != PHASOR_OK) fprintf(stderr, "encode_c: %s\n", phasor_error_message());
  return status != PHASOR_OK;
}

int main(void) {
  phasor_model* model = NULL;
  phasor_encoder* encoder = NULL;
  phasor_result* result = NULL;
  phasor_array vectors;  // [2, W]
  const char* const texts[] = {"Tom bit a dog.", "A dog bit Tom."};
  const phasor_texts both = {.data = texts, .count = 2};
  const char* const settings[] = {"normalize", "true", NULL};
  const phasor_text_options options = {.size = sizeof options, .settings = settings};

  const int wrong = failed(phasor_model_load("sinusoidal", NULL, &model)) ||
                    failed(phasor_encoder_create(model, NULL, &encoder)) ||
                    failed(phasor_embed(encoder, &both, &options, &result)) ||
                    failed(phasor_result_array(result, "dense", -1, &vectors));
  if (!wrong) {
    const float* const a = vectors.data;
    const float* const b = a + vectors.shape[1];
    double cosine = 0;
    for (int64_t i = 0; i < vectors.shape[1]; ++i) cosine += (double)a[i] * b[i];
    printf("cosine %.4f\n", cosine);
  }
  phasor_result_free(result);
  phasor_encoder_free(encoder);
  phasor_model_free(model);
  return wrong;
}
