// Loads the shared library when it runs, as other languages do.
//
//   loading_c_test LIBRARY again     opens, uses and closes it twice
//   loading_c_test LIBRARY copies    uses it and a copy under another name at once
//   loading_c_test LIBRARY threads   on eight threads, each with a model and an encoder of its own
#define _XOPEN_SOURCE 700

#include <dlfcn.h>
#include <phasor/phasor_c.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kThreads = 8, kMost = 64 * 128 };

static void fail(const char* what, const char* why) {
  fprintf(stderr, "loading_c_test: %s: %s\n", what, why);
  exit(1);
}

#define FOR_EACH_FUNCTION(DO) \
  DO(phasor_error_message)    \
  DO(phasor_model_load)       \
  DO(phasor_encoder_create)   \
  DO(phasor_encode)           \
  DO(phasor_result_array) DO(phasor_model_free) DO(phasor_encoder_free) DO(phasor_result_free)

/// The functions of one copy of the library, by their names.
typedef struct library {
  void* handle;
#define DECLARE(name) __typeof__(&name) name;
  FOR_EACH_FUNCTION(DECLARE)
} library;

static void find(const library* l, const char* name, void* place) {
  void* const symbol = dlsym(l->handle, name);
  if (symbol == NULL) fail(name, dlerror());
  memcpy(place, &symbol, sizeof symbol);
}

static library open_library(const char* file) {
  library l = {.handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)};
  if (l.handle == NULL) fail(file, dlerror());
#define FIND(name) find(&l, #name, &l.name);
  FOR_EACH_FUNCTION(FIND)
  return l;
}

static void close_library(const library* l) {
  if (dlclose(l->handle) != 0) fail("dlclose", dlerror());
}

/// Hidden states of a text by a model and an encoder of their own.
typedef struct states {
  const library* from;
  float values[kMost];
  int64_t size;
} states;

static void* run(void* to) {
  states* const s = to;
  const library* const l = s->from;
  phasor_model* model = NULL;
  phasor_encoder* encoder = NULL;
  phasor_result* result = NULL;
  phasor_array hidden;
  const char* const text = "A dog bit Tom, who had bitten it.";
  const phasor_encoder_options options = {.size = sizeof options, .threads = 2};
  if (l->phasor_model_load("sinusoidal", NULL, &model) != PHASOR_OK ||
      l->phasor_encoder_create(model, &options, &encoder) != PHASOR_OK ||
      l->phasor_encode(encoder, &(phasor_texts){&text, NULL, 1}, NULL, &result) != PHASOR_OK ||
      l->phasor_result_array(result, "hidden", -1, &hidden) != PHASOR_OK)
    fail("a run", l->phasor_error_message());
  s->size = hidden.shape[0] * hidden.shape[1];
  if (s->size > kMost) fail("a run", "too many states");
  memcpy(s->values, hidden.data, sizeof(float) * (size_t)s->size);
  l->phasor_model_free(model);
  l->phasor_encoder_free(encoder);
  l->phasor_result_free(result);
  return NULL;
}

static void expect_same(const states* a, const states* b) {
  if (a->size != b->size || memcmp(a->values, b->values, sizeof(float) * (size_t)a->size) != 0)
    fail("the results", "they differ");
}

static void again(const char* file) {
  static states s[2];
  for (int i = 0; i < 2; ++i) {
    const library l = open_library(file);
    s[i].from = &l;
    run(&s[i]);
    close_library(&l);
  }
  expect_same(&s[0], &s[1]);
}

static void copies(const char* file) {
  char name[] = "/tmp/libphasor-copy.XXXXXX";
  const int descriptor = mkstemp(name);
  if (descriptor < 0) fail(name, "cannot be made");
  close(descriptor);
  char copy[1024];
  snprintf(copy, sizeof copy, "cp '%s' %s", file, name);
  if (system(copy) != 0) fail(file, "cannot be copied");
  const library a = open_library(file), b = open_library(name);
  unlink(name);
  if (a.phasor_model_load == b.phasor_model_load) fail(name, "is the same library");
  static states of_a = {0}, of_b = {0};
  of_a.from = &a;
  of_b.from = &b;
  run(&of_a);
  run(&of_b);
  expect_same(&of_a, &of_b);
  close_library(&a);  // the other one works on
  run(&of_b);
  expect_same(&of_a, &of_b);
  close_library(&b);
}

static void threads(const char* file) {
  static states s[kThreads];
  pthread_t others[kThreads];
  const library l = open_library(file);
  for (int i = 0; i < kThreads; ++i) {
    s[i].from = &l;
    if (pthread_create(&others[i], NULL, run, &s[i]) != 0) fail("a thread", "cannot be made");
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(others[i], NULL);
    expect_same(&s[0], &s[i]);
  }
  close_library(&l);
}

int main(int argc, char** argv) {
  const char* const how = argc == 3 ? argv[2] : "";
  if (strcmp(how, "again") == 0) {
    again(argv[1]);
  } else if (strcmp(how, "copies") == 0) {
    copies(argv[1]);
  } else if (strcmp(how, "threads") == 0) {
    threads(argv[1]);
  } else {
    fail("usage", "loading_c_test LIBRARY again|copies|threads");
  }
  return 0;
}
