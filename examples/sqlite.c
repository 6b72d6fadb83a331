// Vectors of texts in SQLite, as an extension that it loads:
//
//     .load build/release/examples/phasor_sqlite
//     SELECT text FROM lines
//     ORDER BY phasor_similarity(vector, phasor_embed('Who bit whom?')) DESC LIMIT 3;
//
// phasor_embed(TEXT [, MODEL]) is the vector of a text, float32, of length 1: a blob to store in a
// column. MODEL is a folder or a bundled model's name (default: sinusoidal); the last one stays
// loaded. phasor_similarity(A, B) is the dot product of two such vectors, their cosine.
#include <phasor/phasor_c.h>
#include <sqlite3ext.h>
#include <string.h>

SQLITE_EXTENSION_INIT1

// The model of a connection; SQLite runs one of its functions at a time.
typedef struct {
  char* name;
  phasor_encoder* encoder;
} loaded_model;

static void unload(loaded_model* loaded) {
  phasor_encoder_free(loaded->encoder);
  sqlite3_free(loaded->name);
  memset(loaded, 0, sizeof *loaded);
}

static void free_model(void* loaded) {
  unload(loaded);
  sqlite3_free(loaded);
}

static int load(loaded_model* loaded, const char* name) {
  if (loaded->name != NULL && strcmp(loaded->name, name) == 0) return 1;
  phasor_model* model = NULL;
  phasor_encoder* encoder = NULL;
  const int good = phasor_model_load(name, NULL, &model) == PHASOR_OK &&
                   phasor_encoder_create(model, NULL, &encoder) == PHASOR_OK;
  phasor_model_free(model);
  if (!good) return 0;
  unload(loaded);
  loaded->name = sqlite3_mprintf("%s", name);
  loaded->encoder = encoder;
  return 1;
}

static void embed(sqlite3_context* context, int count, sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) == SQLITE_NULL) return;  // NULL
  loaded_model* const loaded = sqlite3_user_data(context);
  const char* const text = (const char*)sqlite3_value_text(values[0]);
  const char* const named = count > 1 ? (const char*)sqlite3_value_text(values[1]) : NULL;
  const int64_t size = sqlite3_value_bytes(values[0]);
  const phasor_texts one = {.data = &text, .sizes = &size, .count = 1};
  const char* const settings[] = {"normalize", "true", NULL};
  const phasor_text_options options = {.size = sizeof options, .settings = settings};
  phasor_result* result = NULL;
  phasor_array vector;  // [1, W]
  if (load(loaded, named != NULL ? named : "sinusoidal") &&
      phasor_embed(loaded->encoder, &one, &options, &result) == PHASOR_OK &&
      phasor_result_array(result, "dense", -1, &vector) == PHASOR_OK) {
    const size_t bytes = (size_t)vector.shape[1] * sizeof(float);
    sqlite3_result_blob64(context, vector.data, bytes, SQLITE_TRANSIENT);
  } else {
    sqlite3_result_error(context, phasor_error_message(), -1);
  }
  phasor_result_free(result);
}

static void similarity(sqlite3_context* context, int count, sqlite3_value** values) {
  (void)count;
  if (sqlite3_value_type(values[0]) == SQLITE_NULL || sqlite3_value_type(values[1]) == SQLITE_NULL)
    return;
  const char* const a = sqlite3_value_blob(values[0]);
  const char* const b = sqlite3_value_blob(values[1]);
  const int bytes = sqlite3_value_bytes(values[0]);
  if (bytes != sqlite3_value_bytes(values[1]) || bytes % (int)sizeof(float) != 0) {
    sqlite3_result_error(context, "phasor_similarity: these are no vectors of one model", -1);
    return;
  }
  double sum = 0;
  for (int i = 0; i < bytes; i += (int)sizeof(float)) {
    float x, y;  // a blob need not be aligned
    memcpy(&x, a + i, sizeof x);
    memcpy(&y, b + i, sizeof y);
    sum += (double)x * y;
  }
  sqlite3_result_double(context, sum);
}

/// SQLite looks for this name in phasor_sqlite.so.
PHASOR_API int sqlite3_phasorsqlite_init(sqlite3* database, char** message,
                                         const sqlite3_api_routines* api) {
  SQLITE_EXTENSION_INIT2(api);
  (void)message;
  loaded_model* const loaded = sqlite3_malloc(sizeof *loaded);
  if (loaded == NULL) return SQLITE_NOMEM;
  memset(loaded, 0, sizeof *loaded);
  const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
  int status = sqlite3_create_function_v2(database, "phasor_embed", 2, flags, loaded, embed, NULL,
                                          NULL, free_model);
  if (status == SQLITE_OK)
    status = sqlite3_create_function(database, "phasor_embed", 1, flags, loaded, embed, NULL, NULL);
  if (status == SQLITE_OK)
    status = sqlite3_create_function(database, "phasor_similarity", 2, flags, NULL, similarity,
                                     NULL, NULL);
  return status;
}
