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

/// The functions of one copy of the library.
typedef struct library {
  void* handle;
  const char* (*error_message)(void);
  phasor_status (*load)(const char*, const phasor_load_options*, phasor_model**);
  phasor_status (*create)(const phasor_model*, const phasor_encoder_options*, phasor_encoder**);
  phasor_status (*encode)(phasor_encoder*, const phasor_texts*, const phasor_run_options*,
                          phasor_result**);
  phasor_status (*array)(const phasor_result*, const char*, int64_t, phasor_array*);
  void (*free_model)(phasor_model*);
  void (*free_encoder)(phasor_encoder*);
  void (*free_result)(phasor_result*);
} library;

static library open_library(const char* file) {
  library l = {.handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)};
  if (l.handle == NULL) fail(file, dlerror());
  const struct {
    const char* name;
    void* place;
  } symbols[] = {
      {"phasor_error_message", &l.error_message}, {"phasor_model_load", &l.load},
      {"phasor_encoder_create", &l.create},       {"phasor_encode", &l.encode},
      {"phasor_result_array", &l.array},          {"phasor_model_free", &l.free_model},
      {"phasor_encoder_free", &l.free_encoder},   {"phasor_result_free", &l.free_result}};
  for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; ++i) {
    void* const symbol = dlsym(l.handle, symbols[i].name);
    if (symbol == NULL) fail(symbols[i].name, dlerror());
    memcpy(symbols[i].place, &symbol, sizeof symbol);
  }
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
  if (l->load("sinusoidal", NULL, &model) != PHASOR_OK ||
      l->create(model, &options, &encoder) != PHASOR_OK ||
      l->encode(encoder, &(phasor_texts){&text, NULL, 1}, NULL, &result) != PHASOR_OK ||
      l->array(result, "hidden", -1, &hidden) != PHASOR_OK) {
    fail("a run", l->error_message());
  }
  s->size = hidden.shape[0] * hidden.shape[1];
  if (s->size > kMost) fail("a run", "too many states");
  memcpy(s->values, hidden.data, sizeof(float) * (size_t)s->size);
  l->free_model(model);
  l->free_encoder(encoder);
  l->free_result(result);
  return NULL;
}

static void expect_same(const states* a, const states* b) {
  if (a->size != b->size || memcmp(a->values, b->values, sizeof(float) * (size_t)a->size) != 0) {
    fail("the results", "they differ");
  }
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

static void copy_file(const char* from, int to) {
  char buffer[1 << 16];
  FILE* const file = fopen(from, "rb");
  if (file == NULL) fail(from, "cannot be opened");
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;) {
    if (write(to, buffer, n) != (ssize_t)n) fail(from, "cannot be copied");
  }
  fclose(file);
}

static void copies(const char* file) {
  char name[] = "/tmp/libphasor-copy.XXXXXX";
  const int descriptor = mkstemp(name);
  if (descriptor < 0) fail(name, "cannot be made");
  copy_file(file, descriptor);
  close(descriptor);
  const library a = open_library(file), b = open_library(name);
  unlink(name);
  if (a.load == b.load) fail(name, "is the same library");
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
