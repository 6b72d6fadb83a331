// Hooks that are recorded, observed and changed.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/// What the functions below count and do.
typedef struct seen {
  int64_t calls;
  phasor_encoder* encoder;  // to be called from inside
  phasor_status inside;
  phasor_stop* stop;
  phasor_result* recorded;  // what each event should show
  float value;              // what values are set to
  int64_t latest;           // first_token
} seen;

static phasor_result* run(phasor_encoder* encoder, const phasor_texts* texts,
                          const phasor_hook* hooks, int64_t num_hooks, const char* record) {
  const phasor_run_options options = {.size = sizeof options,
                                      .hooks = hooks,
                                      .num_hooks = num_hooks,
                                      .record = &record,
                                      .num_record = record != NULL};
  return encode(encoder, texts, &options);
}

// --- Recording ---

void test_recording(const fixture* f) {
  phasor_result* const plain = encode(f->encoder, kTwo, NULL);
  phasor_result* const all = run(f->encoder, kTwo, NULL, 0, "all");
  CHECK(same(plain, all, "hidden"));
  const int64_t* const offsets = int64s(all, "offsets");
  for (int64_t text = 0; text < 2; ++text) {
    const int64_t T = offsets[text + 1] - offsets[text];
    const phasor_array last = array_of_text(all, "blocks.5.hook_normalized_resid_post", text);
    CHECK(last.num_dims == 2 && last.shape[0] == T && last.shape[1] == 128);
    CHECK(memcmp(last.data, floats(all, "hidden") + 128 * offsets[text], 512 * (size_t)T) == 0);
    const phasor_array pattern = array_of_text(all, "blocks.3.attn.hook_pattern", text);
    CHECK(pattern.num_dims == 3 && pattern.shape[0] == 4 && pattern.shape[1] == T &&
          pattern.shape[2] == T);
  }
  // Each name once, and every one that is not of all texts is of each text.
  int64_t names = 0;
  for (const char* name; (name = phasor_result_array_name(all, names)) != NULL; ++names) {
    phasor_array found;
    if (strstr(name, "hook_") == NULL) continue;
    for (int64_t text = 0; text < 2; ++text) OK(phasor_result_array(all, name, text, &found));
    FAILS(PHASOR_NOT_FOUND, name, phasor_result_array(all, name, -1, &found));
    FAILS(PHASOR_NOT_FOUND, "text 2", phasor_result_array(all, name, 2, &found));
  }
  CHECK(names == 4 + 3 + 6 * 15);
  FREE(plain, all);
  phasor_result* none = NULL;
  const char* const wrong[] = {"hook_nothing", NULL};
  for (size_t i = 0; i < 2; ++i) {
    const phasor_run_options options = {
        .size = sizeof options, .record = &wrong[i], .num_record = 1};
    REFUSES("hook", phasor_encode(f->encoder, kTwo, &options, &none));
  }
  const phasor_run_options negative = {.size = sizeof negative, .record = wrong, .num_record = -1};
  REFUSES("-1", phasor_encode(f->encoder, kTwo, &negative, &none));
  CHECK(none == NULL);
}

// --- Observing ---

static int32_t compare(void* user, const phasor_hook_event* event) {
  seen* const s = user;
  ++s->calls;
  CHECK(event->size == sizeof *event && event->changeable == NULL && event->first_token == 0);
  CHECK(event->array.type == PHASOR_FLOAT32);
  CHECK(same_array(event->array, array_of_text(s->recorded, event->name, event->text)));
  return 0;
}

static int32_t count(void* user, const phasor_hook_event* event) {
  seen* const s = user;
  ++s->calls;
  if (event->first_token > s->latest) s->latest = event->first_token;
  return 0;
}

void test_observing(const fixture* f) {
  phasor_result* const recorded = run(f->encoder, kTwo, NULL, 0, "all");
  seen all = {.recorded = recorded}, scores = {0}, one = {0};
  const phasor_hook hooks[] = {{"all", compare, &all, 0},
                               {"attn.hook_attn_scores", count, &scores, 0},
                               {"blocks.2.hook_mlp_out", count, &one, 0},
                               {"blocks.2.hook_mlp_out", count, &one, 0}};
  phasor_result* const result = run(f->encoder, kTwo, hooks, 4, NULL);
  CHECK(same(result, recorded, "hidden"));
  CHECK(all.calls == 2 * (3 + 6 * 15) && scores.calls == 2 * 6 && one.calls == 2 * 2);
  FREE(result, recorded);
  // Windows of a long text, by the token that they begin with.
  seen windows = {0};
  const phasor_hook hook = {"hook_full_embed", count, &windows, 0};
  const phasor_run_options options = {
      .size = sizeof options, .hooks = &hook, .num_hooks = 1, .overflow = "window"};
  phasor_encoder* const learned = encoder_of("learned");
  phasor_result_free(encode(learned, kLong, &options));
  CHECK(windows.calls > 1 && windows.latest > 0);
  phasor_encoder_free(learned);
}

static int32_t refuse(void* user, const phasor_hook_event* event) {
  (void)event;
  ++((seen*)user)->calls;
  return 1;
}

static int32_t run_again(void* user, const phasor_hook_event* event) {
  seen* const s = user;
  phasor_result* result = NULL;
  (void)event;
  s->inside = phasor_encode(s->encoder, kTwo, NULL, &result);
  phasor_result_free(result);
  if (s->stop != NULL) phasor_stop_request(s->stop);
  return 0;
}

void test_ending(const fixture* f) {
  phasor_result* none = NULL;
  seen s = {.encoder = f->encoder};
  phasor_hook hook = {"blocks.1.hook_attn_out", refuse, &s, 0};
  phasor_run_options options = {.size = sizeof options, .hooks = &hook, .num_hooks = 1};
  for (hook.change = 0; hook.change <= 1; ++hook.change)
    FAILS(PHASOR_CANCELLED, "blocks.1.hook_attn_out",
          phasor_encode(f->encoder, kTwo, &options, &none));
  CHECK(s.calls == 2);
  hook.change = 0;
  hook.function = run_again;
  phasor_result_free(encode(f->encoder, kTwo, &options));
  CHECK(s.inside == PHASOR_OK);
  OK(phasor_stop_create(&s.stop));
  options.stop = s.stop;
  FAILS(PHASOR_CANCELLED, "", phasor_encode(f->encoder, kTwo, &options, &none));
  phasor_stop_free(s.stop);
  options.stop = NULL;
  hook.function = NULL;
  REFUSES("function", phasor_encode(f->encoder, kTwo, &options, &none));
  hook = (phasor_hook){NULL, count, &s, 0};
  REFUSES("NULL", phasor_encode(f->encoder, kTwo, &options, &none));
  hook.name = "blocks.6.hook_attn_out";
  REFUSES("blocks.6", phasor_encode(f->encoder, kTwo, &options, &none));
  options.num_hooks = -1;
  REFUSES("-1", phasor_encode(f->encoder, kTwo, &options, &none));
  options.hooks = NULL;
  options.num_hooks = 1;
  REFUSES("NULL", phasor_encode(f->encoder, kTwo, &options, &none));
  CHECK(none == NULL);
}

// --- Changing ---

static int32_t set(void* user, const phasor_hook_event* event) {
  seen* const s = user;
  ++s->calls;
  CHECK(event->changeable == event->array.data);
  for (int64_t i = 0; i < num_elements(event->array); ++i) event->changeable[i] = s->value;
  return 0;
}

static int32_t expect_value(void* user, const phasor_hook_event* event) {
  const seen* const s = user;
  CHECK(event->changeable == NULL);
  for (int64_t i = 0; i < num_elements(event->array); ++i)
    CHECK(((const float*)event->array.data)[i] == s->value);
  return 0;
}

void test_changing(const fixture* f) {
  phasor_result* const plain = run(f->encoder, kTwo, NULL, 0, NULL);
  seen s = {0};
  const phasor_hook nothing = {"hook_resid_mid", count, &s, 1};
  phasor_result* const untouched = run(f->encoder, kTwo, &nothing, 1, NULL);
  CHECK(s.calls == 12 && same(plain, untouched, "hidden"));
  // In order: the last one's values are what remains. An observer, though listed first, sees what
  // was changed, and so does the recording.
  const char* const last = "blocks.5.hook_normalized_resid_post";
  seen first = {.value = 1}, second = {.value = 2};
  const phasor_hook order[] = {
      {last, expect_value, &second, 0}, {last, set, &first, 1}, {last, set, &second, 1}};
  phasor_result* const twos = run(f->encoder, kTwo, order, 3, last);
  CHECK(floats(twos, "hidden")[0] == 2 && floats(twos, "hidden")[777] == 2);
  CHECK(((const float*)array_of_text(twos, last, 1).data)[5] == 2);
  first.value = NAN;
  const phasor_run_options not_finite = {
      .size = sizeof not_finite, .hooks = order + 1, .num_hooks = 1};
  phasor_result* none = NULL;
  REFUSES("not finite", phasor_encode(f->encoder, kTwo, &not_finite, &none));
  CHECK(none == NULL);
  FREE(plain, untouched, twos);
}
