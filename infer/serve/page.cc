// The page at /, and what it asks for.
#include <cstring>

#include "infer/serve/exchange.h"
#include "infer/serve/live.h"

namespace infer {
namespace {

constexpr int64_t kMostObservedBytes = 10'000;  // of a text
constexpr int64_t kMostInterventions = 32;

/// Options of the command line in a message become the fields that give them.
Failure in_fields(Failure failure) {
  for (const auto& [option, field] :
       {std::pair("--edit", "`edits`"), std::pair("--cut-residual", "`cut_residuals`"),
        std::pair("--positions", "`positions` or `beside_positions`")}) {
    if (failure.message.starts_with(option)) failure.message.replace(0, std::strlen(option), field);
  }
  constexpr std::string_view kFiles = " (or table=FILE)";  // which the server does not read
  if (const size_t at = failure.message.find(kFiles); at != std::string::npos)
    failure.message.erase(at, kFiles.size());
  return failure;
}

}  // namespace

void Exchange::get_page() {
  answer(HttpResponse{
      .body = service.page_,
      .content_type = "text/html; charset=utf-8",
      .headers = {{"Content-Security-Policy",
                   "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src "
                   "'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
                   "frame-ancestors 'none'"},
                  {"X-Content-Type-Options", "nosniff"},
                  {"Referrer-Policy", "no-referrer"},
                  {"Cache-Control", "no-cache"}}});
}

void Exchange::observe() {
  Observation observation{
      .model = {&model(), fields->text("positions", "own")},
      .texts = fields->texts("texts", {2}),
      .parse_special = read_options(*asked, 0, *fields, *fields).parse_special,
      .interventions = {.edits = fields->list("edits", {kMostInterventions}),
                        .cuts = fields->list("cut_residuals", {kMostInterventions})},
      .deadline = start + service.options_.timeout,
      .gone = gone};
  const std::string beside = fields->text("beside", "");
  const std::string beside_positions = fields->text("beside_positions", "");
  fields->refuse_others();
  if (!beside.empty() || !beside_positions.empty()) {
    observation.beside = {beside.empty() ? observation.model.queue : &model(beside),
                          beside_positions.empty() ? "own" : beside_positions};
    if (observation.interventions.any()) invalid("`beside` and edits or cuts exclude each other");
    if (*observation.beside == observation.model)
      invalid("`beside` is the same model with the same positions");
  }
  has_read(*observation.model.queue, observation.texts.size());
  for (const std::string& text : observation.texts) {
    if (std::ssize(text) > kMostObservedBytes)
      invalid("a text has {} bytes; at most {} are observed", text.size(), kMostObservedBytes);
  }
  for (const std::string& edit : observation.interventions.edits) {
    if (edit.starts_with("table=")) invalid("the server reads no files, so there is no table=");
  }
  observation.take = [self = shared_from_this()](int64_t bytes) { self->take(bytes); };
  observation.done = [self = shared_from_this()](std::string page, int64_t tokens,
                                                 const Failure& failure) {
    self->attempt([&] {
      if (failure.status != 0) return self->fail(in_fields(failure));
      self->tokens = tokens;
      self->answer(std::move(page));
    });
  };
  if (!service.observations_.add(std::move(observation)))
    refuse(429, "Overloaded", "too many observations wait; try again later");
}

}  // namespace infer
