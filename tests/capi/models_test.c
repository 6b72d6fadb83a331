// Versions, models, and structs of other versions.
#define _XOPEN_SOURCE 700

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

void test_before_any_failure(void) {
  CHECK(strcmp(phasor_error_message(), "") == 0);
  CHECK(phasor_interface_version() == PHASOR_INTERFACE_VERSION);
  CHECK(isdigit((unsigned char)phasor_info("version")[0]));
  CHECK(isdigit((unsigned char)phasor_info("backend_version")[0]));
  const char* const faster = phasor_info("faster_than_float32");
  CHECK(strcmp(faster, "") == 0 || strstr(faster, "int8") != NULL);
  CHECK(phasor_info("versions") == NULL && phasor_info(NULL) == NULL);
  phasor_model_free(NULL);
  phasor_encoder_free(NULL);
  phasor_result_free(NULL);
  phasor_stop_free(NULL);
  phasor_stop_request(NULL);
  CHECK(strcmp(phasor_error_message(), "") == 0);
}

void test_hook_names(const fixture* f) {
  (void)f;
  const char* const names = phasor_info("hooks");
  int64_t lines = 0;
  for (const char* at = names; (at = strchr(at, '\n')) != NULL; ++at) ++lines;
  CHECK(lines > 15 && strncmp(names, "hook_embed\n", 11) == 0);
  CHECK(strstr(names, "\nblocks.{}.attn.hook_pattern\n") != NULL);
  CHECK(phasor_info("hooks") == names);
}

/// Models in a folder of our own: a link to a bundled one, and one of a kind that phasor has not.
void test_folders(const fixture* f) {
  char folder[] = "/tmp/capi_test.XXXXXX", gpt[64], config[128];
  if (mkdtemp(folder) == NULL) {
    CHECK(!"a temporary folder");
    return;
  }
  sprintf(gpt, "%s/a_gpt", folder);
  sprintf(config, "%s/config.json", gpt);
  CHECK(mkdir(gpt, 0700) == 0);
  FILE* const file = fopen(config, "w");
  fputs("{\"model_type\": \"gpt2\", \"n_layer\": 2}", file);
  fclose(file);
  phasor_model* model = NULL;
  FAILS(PHASOR_NOT_FOUND, "a_gpt", phasor_model_load("a_gpt", NULL, &model));
  OK(phasor_add_models_folder(folder));
  FAILS(PHASOR_UNSUPPORTED, "gpt2", phasor_model_load("a_gpt", NULL, &model));
  FAILS(PHASOR_INVALID_MODEL, "config.json", phasor_model_load(folder, NULL, &model));
  CHECK(model == NULL);
  CHECK(unlink(config) == 0 && rmdir(gpt) == 0 && symlink(f->reranker, gpt) == 0);
  OK(phasor_model_load("a_gpt", NULL, &model));
  phasor_model_free(model);
  CHECK(unlink(gpt) == 0 && rmdir(folder) == 0);
}

/// Whether a file below the folder is mapped; `otherwise` where there is no /proc.
static int is_mapped(const char* folder, int otherwise) {
  char line[4096];
  int found = 0;
  FILE* const maps = fopen("/proc/self/maps", "r");
  if (maps == NULL) return otherwise;
  while (fgets(line, sizeof line, maps) != NULL) found |= strstr(line, folder) != NULL;
  fclose(maps);
  return found;
}

void test_copy(const fixture* f) {
  const phasor_load_options options = {.size = sizeof options, .copy = 1};
  phasor_model *copied = NULL, *mapped = NULL;
  OK(phasor_model_load(f->reranker, &options, &copied));
  CHECK(!is_mapped(f->reranker, 0));
  OK(phasor_model_load(f->reranker, NULL, &mapped));
  CHECK(is_mapped(f->reranker, 1));
  phasor_model_free(mapped);
  phasor_model_free(copied);
}

void test_links(const fixture* f) {
  phasor_load_options options = {.size = sizeof options};
  phasor_model* model = NULL;
  FAILS(PHASOR_INVALID_MODEL, "follow_links", phasor_model_load(f->links, &options, &model));
  options.follow_links = 1;
  OK(phasor_model_load(f->links, &options, &model));
  phasor_model_free(model);
}

/// The tensors of the folder's float16 file, which the result keeps.
void test_tensors(const fixture* f) {
  (void)f;
  phasor_model* model = NULL;
  phasor_result* tensors = NULL;
  phasor_array array;
  OK(phasor_model_load("sinusoidal", NULL, &model));
  OK(phasor_model_tensors(model, &tensors));
  phasor_model_free(model);
  CHECK(strcmp(phasor_result_array_name(tensors, 0), "token_embedding.weight") == 0);
  OK(phasor_result_array(tensors, "blocks.5.mlp.up.weight", -1, &array));
  CHECK(array.type == PHASOR_FLOAT16 && array.num_dims == 2);
  CHECK(array.shape[0] == 512 && array.shape[1] == 128);
  FAILS(PHASOR_NOT_FOUND, "blocks.5.mlp.up.weight",
        phasor_result_array(tensors, "blocks.6.mlp.up.weight", -1, &array));
  phasor_result_free(tensors);
}

void test_models(const fixture* f) {
  phasor_model* model = NULL;
  FAILS(PHASOR_NOT_FOUND, "nowhere", phasor_model_load("nowhere", NULL, &model));
  CHECK(model == NULL);
  const char* const info = phasor_model_info(f->model);
  CHECK(info[0] == '{' && strstr(info, "\"sinusoidal\"") != NULL);
  CHECK(phasor_model_info(f->model) == info);
  CHECK(phasor_model_info(NULL) == NULL);
  phasor_load_options options = {.size = sizeof options, .language = "fr"};
  REFUSES("fr", phasor_model_load("sinusoidal", &options, &model));
  CHECK(model == NULL);
}

// --- Each struct that has a size, in a call ---

#define CALL_WITH(name, object, call)                                \
  static phasor_status name(const fixture* f, const void* options) { \
    object* made = NULL;                                             \
    const phasor_status status = call;                               \
    (void)f;                                                         \
    object##_free(made);                                             \
    return status;                                                   \
  }
CALL_WITH(load_with, phasor_model, phasor_model_load("sinusoidal", options, &made))
CALL_WITH(create_with, phasor_encoder, phasor_encoder_create(f->model, options, &made))
CALL_WITH(tokenize_with, phasor_result, phasor_tokenize(f->model, kTwo, NULL, options, &made))
CALL_WITH(encode_with, phasor_result, phasor_encode(f->encoder, kTwo, options, &made))
CALL_WITH(embed_with, phasor_result, phasor_embed(f->encoder, kTwo, options, &made))
CALL_WITH(rank_with, phasor_result, phasor_rank(f->encoder, TEXTS("a dog"), kTwo, options, &made))

static phasor_status positions_with(const fixture* f, const void* options) {
  const phasor_run_options run = {.size = sizeof run, .positions = options};
  return encode_with(f, &run);
}

void test_structs(const fixture* f) {
  const struct {
    const char* name;
    size_t size;
    phasor_status (*call)(const fixture* f, const void* options);
  } structs[] = {{"phasor_load_options", sizeof(phasor_load_options), load_with},
                 {"phasor_tokenize_options", sizeof(phasor_tokenize_options), tokenize_with},
                 {"phasor_encoder_options", sizeof(phasor_encoder_options), create_with},
                 {"phasor_positions", sizeof(phasor_positions), positions_with},
                 {"phasor_run_options", sizeof(phasor_run_options), encode_with},
                 {"phasor_text_options", sizeof(phasor_text_options), embed_with},
                 {"phasor_text_options", sizeof(phasor_text_options), rank_with}};
  for (size_t i = 0; i < sizeof structs / sizeof structs[0]; ++i) {
    const size_t size = structs[i].size;
    OK(structs[i].call(f, NULL));
    // On the heap and no longer than it says, for the address sanitizer.
    const size_t sizes[] = {0, sizeof(size_t), size - 4, size, size + 8, size + 200, (size_t)-1};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; ++s) {
      const int fits = sizes[s] >= size && sizes[s] <= size + 200;
      const size_t bytes = fits ? sizes[s] : size;
      char* const options = calloc(1, bytes);
      memcpy(options, &sizes[s], sizeof(size_t));
      if (fits) {
        OK(structs[i].call(f, options));
      } else {
        REFUSES(structs[i].name, structs[i].call(f, options));
      }
      options[bytes - 1] = 1;
      if (sizes[s] > size) REFUSES(structs[i].name, structs[i].call(f, options));
      if (sizes[s] > size && fits) REFUSES("later version", structs[i].call(f, options));
      free(options);
    }
  }
}
