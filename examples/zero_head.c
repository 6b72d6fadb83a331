// Sets one head after another to zero, and shows what that changes, in C.
#include <phasor/phasor_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(phasor_status status) {
  if (status == PHASOR_OK) return;
  fprintf(stderr, "zero_head_c: %s\n", phasor_error_message());
  exit(1);
}

// At attn.hook_z: the outputs of the heads, [T, H, D].
static int32_t zero_head(void* user, const phasor_hook_event* event) {
  const int64_t head = *(const int64_t*)user;
  const int64_t T = event->array.shape[0], H = event->array.shape[1], D = event->array.shape[2];
  for (int64_t t = 0; t < T; ++t) {
    memset(event->changeable + (t * H + head) * D, 0, (size_t)D * sizeof(float));
  }
  return 0;
}

int main(void) {
  phasor_model* model;
  phasor_encoder* encoder;
  phasor_result *plain, *changed;
  phasor_array before, after;  // [N, C]
  const char* const text = "Tom bit a dog.";
  const phasor_texts texts = {.data = &text, .count = 1};

  check(phasor_model_load("sinusoidal", NULL, &model));
  check(phasor_encoder_create(model, NULL, &encoder));
  check(phasor_encode(encoder, &texts, NULL, &plain));
  check(phasor_result_array(plain, "hidden", -1, &before));
  for (int64_t head = 0; head < 4; ++head) {
    const phasor_hook hook = {
        .name = "blocks.0.attn.hook_z", .function = zero_head, .user = &head, .change = 1};
    const phasor_run_options options = {.size = sizeof options, .hooks = &hook, .num_hooks = 1};
    check(phasor_encode(encoder, &texts, &options, &changed));
    check(phasor_result_array(changed, "hidden", -1, &after));
    const float* const a = before.data;
    const float* const b = after.data;
    double difference = 0, length = 0;
    for (int64_t i = 0; i < before.shape[0] * before.shape[1]; ++i) {
      difference += ((double)b[i] - a[i]) * ((double)b[i] - a[i]);
      length += (double)a[i] * a[i];
    }
    printf("without head %d the states differ by %.2f %% of their squared length\n", (int)head,
           100 * difference / length);
    phasor_result_free(changed);
  }
  phasor_result_free(plain);
  phasor_encoder_free(encoder);
  phasor_model_free(model);
  return 0;
}
