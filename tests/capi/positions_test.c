// Which positions a run adds.
#include <string.h>

#include "check.h"

/// The hidden states of one text with these positions.
static phasor_result* with(phasor_encoder* encoder, const char* text, phasor_positions positions) {
  positions.size = sizeof positions;
  const phasor_run_options options = {.size = sizeof options, .positions = &positions};
  return encode(encoder, TEXTS(text), &options);
}

static int same_states(phasor_result* a, phasor_result* b) {
  const int equal = same(a, b, "hidden");
  FREE(a, b);
  return equal;
}

static const char* const kText = "a dog bit Tom";
#define WITH(...) with(f->encoder, kText, (phasor_positions){__VA_ARGS__})
#define EDITED(...)                                 \
  WITH(.edits = (const char* const[]){__VA_ARGS__}, \
       .num_edits = sizeof((const char* const[]){__VA_ARGS__}) / sizeof(char*))

void test_tables_and_ids(const fixture* f) {
  CHECK(same_states(WITH(.kind = "sinusoidal"), encode(f->encoder, TEXTS(kText), NULL)));
  CHECK(same_states(WITH(.kind = "none"), EDITED("scale=0")));
  phasor_result* vectors = NULL;
  OK(phasor_position_vectors(f->model, 50, NULL, NULL, &vectors));
  const float* const rows = floats(vectors, "vectors");
  CHECK(same_states(WITH(.table = rows, .table_rows = 50, .table_width = 128), WITH(.kind = NULL)));
  CHECK(!same_states(WITH(.table = rows + 128, .table_rows = 49, .table_width = 128),
                     WITH(.kind = NULL)));
  CHECK(same_states(WITH(.table = rows + 128, .table_rows = 49, .table_width = 128),
                    EDITED("shift=1")));
  phasor_result_free(vectors);
  phasor_result* const plain = WITH(.kind = NULL);
  const int64_t T = int64s(plain, "offsets")[1];
  phasor_result_free(plain);
  int32_t upwards[64], downwards[64];
  for (int32_t i = 0; i < T; ++i) {
    upwards[i] = i;
    downwards[i] = (int32_t)T - 1 - i;
  }
  CHECK(same_states(WITH(.ids = upwards, .num_ids = T), WITH(.kind = NULL)));
  CHECK(same_states(WITH(.ids = downwards, .num_ids = T), EDITED("reverse")));
  phasor_result* const reversed = WITH(.ids = downwards, .num_ids = T);
  CHECK(floats(reversed, "positions")[0] == (float)(T - 1));
  phasor_result_free(reversed);
}

void test_positions_that_cannot_be(const fixture* f) {
  const float table[256] = {0};
  const int32_t ids[] = {0, 1};
  const char* const null_edit[] = {NULL};
  const char* const no_edit[] = {"turn"};
  const phasor_positions wrong[] = {
      {.kind = "circular"},
      {.kind = "learned"},  // the model has no table
      {.kind = "none", .table = table, .table_rows = 2, .table_width = 128},
      {.table = table, .table_rows = 0, .table_width = 128},
      {.table = table, .table_rows = 2},
      {.table = table, .table_rows = INT64_MAX, .table_width = INT64_MAX},
      {.table = table, .table_rows = -2, .table_width = -128},
      {.table = table, .table_rows = 4, .table_width = 64},
      {.table = table, .table_rows = 2, .table_width = 128},  // shorter than the text
      {.table_rows = 2, .table_width = 128},
      {.ids = ids},
      {.ids = ids, .num_ids = 2},
      {.ids = ids, .num_ids = -1},
      {.num_ids = 2},
      {.edits = null_edit, .num_edits = 1},
      {.edits = no_edit, .num_edits = 1},
      {.edits = no_edit, .num_edits = -1},
      {.num_edits = 1}};
  phasor_result* none = NULL;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    phasor_positions positions = wrong[i];
    positions.size = sizeof positions;
    const phasor_run_options options = {.size = sizeof options, .positions = &positions};
    const phasor_status status = phasor_encode(f->encoder, TEXTS(kText), &options, &none);
    CHECK(status == PHASOR_INVALID_ARGUMENT || status == PHASOR_TOO_LONG);
    CHECK(none == NULL);
  }
}

void test_vectors(const fixture* f) {
  phasor_result* result = NULL;
  OK(phasor_position_vectors(f->model, 300, NULL, NULL, &result));
  const phasor_array vectors = array(result, "vectors");
  CHECK(vectors.num_dims == 2 && vectors.shape[0] == 300 && vectors.shape[1] == 128);
  CHECK(close_to(floats(result, "vectors")[128], 0.8414709848));
  phasor_result_free(result);
  const phasor_positions none = {.size = sizeof none, .kind = "none"};
  OK(phasor_position_vectors(f->model, 2, &none, NULL, &result));
  for (int i = 0; i < 256; ++i) CHECK(floats(result, "vectors")[i] == 0);
  phasor_result_free(result);
  result = NULL;
  phasor_model* const learned = load("learned");
  FAILS(PHASOR_TOO_LONG, "128", phasor_position_vectors(learned, 129, NULL, NULL, &result));
  REFUSES("0", phasor_position_vectors(learned, 0, NULL, NULL, &result));
  REFUSES("-1", phasor_position_vectors(learned, -1, NULL, NULL, &result));
  REFUSES("overflow", phasor_position_vectors(learned, 2, NULL, "", &result));
  CHECK(result == NULL);
  FAILS(PHASOR_TOO_LONG, "128", phasor_position_vectors(learned, 129, NULL, "truncate", &result));
  OK(phasor_position_vectors(learned, 129, NULL, "clamp", &result));
  CHECK(memcmp(floats(result, "vectors") + 127 * 128, floats(result, "vectors") + 128 * 128, 512) ==
        0);
  phasor_result_free(result);
  phasor_model_free(learned);
}
