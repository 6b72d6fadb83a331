// What layers do with positions, as JSON.
#include <stdlib.h>
#include <string.h>

#include "check.h"

static const char* observed(const phasor_result* result, int64_t i) {
  return phasor_result_string(result, "observed", i, NULL);
}

static int has(const char* json, const char* words) {
  return json != NULL && strstr(json, words) != NULL;
}

typedef struct stages {
  int calls, most;
} stages;

static int32_t count(void* user, const char* stage, int64_t done, int64_t total) {
  stages* const s = user;
  CHECK(*stage != '\0' && done >= 0 && done <= total);
  return ++s->calls > s->most;
}

void test_texts_of_one_run(const fixture* f) {
  phasor_result *result = NULL, *again = NULL;
  const char* const views[] = {"effect", "norm"};
  phasor_observe_options options = {.size = sizeof options, .name = "it"};
  options.views = views;
  options.num_views = 2;
  OK(phasor_observe(f->encoder, kTwo, &options, &result));
  CHECK(has(observed(result, 0), "{\"model\":\"it\",") && has(observed(result, 1), "\"effect\":["));
  CHECK(!has(observed(result, 0), "\"runs\"") && !has(observed(result, 0), "\"order\""));
  CHECK(!has(observed(result, 0), "\"pooled\""));  // which is measured with "effect"
  CHECK(observed(result, 2) == NULL);
  options.figures = 1;
  OK(phasor_observe(f->encoder, kTwo, &options, &again));
  CHECK(has(observed(again, 1), "\"patterns\":{\"cells\":"));
  phasor_result_free(result);
  phasor_result_free(again);
  OK(phasor_observe(f->encoder, TEXTS("Tom bit a dog."), NULL, &result));
  CHECK(has(observed(result, 0), "\"order\":[{\"layer\":0,"));
  phasor_result_free(result);
}

void test_means_and_two_runs(const fixture* f) {
  const char* const reverse = "reverse";
  const phasor_positions edited = {.size = sizeof edited, .edits = &reverse, .num_edits = 1};
  const phasor_run_options second = {.size = sizeof second, .positions = &edited};
  const char* const moved = "moved";
  phasor_observe_options options = {.size = sizeof options, .second = &second};
  options.views = &moved;
  options.num_views = 1;
  phasor_result* result = NULL;
  OK(phasor_observe(f->encoder, kTwo, &options, &result));
  CHECK(has(observed(result, 0), "{\"runs\":[{\"label\":\"before\","));
  CHECK(has(observed(result, 1), "\"label\":\"after\"") && has(observed(result, 1), "reverse\"]"));
  phasor_result_free(result);
  options.means = 1;
  OK(phasor_observe(f->encoder, kTwo, &options, &result));
  CHECK(has(observed(result, 0), "\"texts\":2,") && observed(result, 1) == NULL);
  phasor_result_free(result);
  options.name = "models/one";
  options.second_name = "two";
  options.baseline = "random:1";
  OK(phasor_compare(f->encoder, f->encoder, kTwo, &options, &result));
  CHECK(has(observed(result, 0), "\"label\":\"one\"") && has(observed(result, 0), "\"moved\":["));
  CHECK(has(observed(result, 0), "\"label\":\"two\"") && observed(result, 1) == NULL);
  CHECK(has(observed(result, 0), "\"label\":\"two (untrained)\""));
  phasor_result_free(result);
}

void test_ends_and_refusals(const fixture* f) {
  phasor_result* none = NULL;
  phasor_observe_options options = {.size = sizeof options, .progress = count};
  stages s = {.most = 0};
  options.user = &s;
  FAILS(PHASOR_CANCELLED, "progress", phasor_observe(f->encoder, kTwo, &options, &none));
  CHECK(s.calls == 1);
  options.progress = NULL;
  OK(phasor_stop_create(&options.stop));
  phasor_stop_request(options.stop);
  FAILS(PHASOR_CANCELLED, "", phasor_observe(f->encoder, kTwo, &options, &none));
  phasor_stop_free(options.stop);
  options.stop = NULL;
  const char* const nothing[] = {"nothing"};
  const char* const moved[] = {"moved"};
  float hidden = 0;
  const phasor_run_options run = {.size = sizeof run, .hidden = &hidden, .hidden_size = 1};
  const struct {
    const char* words;
    phasor_observe_options options;
  } wrong[] = {
      {"nothing", {.views = nothing, .num_views = 1}},
      {"moved", {.views = moved, .num_views = 1}},
      {"random:0", {.views = moved, .num_views = 1, .allowed_only = 1, .baseline = "random:0"}},
      {"11", {.baseline = "random:11"}},
      {"top_k", {.top_k = -1}},
      {"reversed", {.without = "reversed"}},
      {"positions", {.run = &run}}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    options = wrong[i].options;
    options.size = sizeof options;
    REFUSES(wrong[i].words, phasor_observe(f->encoder, kTwo, &options, &none));
  }
  options = (phasor_observe_options){
      .size = sizeof options, .views = moved, .num_views = 1, .allowed_only = 1};
  OK(phasor_observe(f->encoder, kTwo, &options, &none));
  CHECK(has(observed(none, 0), "\"views\":{},"));
  phasor_result_free(none);
  none = NULL;
  CHECK(none == NULL);
}

void test_observe(const fixture* f) {
  (void)f;
  const char* const views = phasor_info("views");
  CHECK(has(views, "[{\"name\":\"") && has(views, "\"needs\":\"two runs\""));
  CHECK(phasor_info("views") == views);
}
