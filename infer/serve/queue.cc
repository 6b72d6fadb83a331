#include "infer/serve/queue.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <new>
#include <utility>

#include "files/refuse.h"
#include "infer/cli/command_line.h"
#include "infer/serve/fields.h"
#include "phasor/errors.h"
#include "phasor/fields.h"

namespace infer {
namespace {

constexpr int64_t kLeastText = 16384;  // tokens that a text may have, however small batches are

}  // namespace

const Failure kLate = {504, "Timeout", "the request took longer than the server allows"};
const Failure kGone = {499, "Gone", "the client has gone"};

Failure failure_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Refusal& refusal) {
    return refusal.failure;
  } catch (const UsageError& error) {
    return {422, "Validation", error.what()};
  } catch (const phasor::InvalidArgument& error) {
    return {422, "Validation", error.what()};
  } catch (const phasor::Error& error) {
    if (error.code() == phasor::ErrorCode::kCancelled) return kLate;
    return {424, "Backend", error.what()};
  } catch (const std::bad_alloc&) {
    return {424, "Backend", "out of memory"};
  } catch (const std::exception& error) {
    return {424, "Backend", error.what()};
  }
}

RunEnd::RunEnd(boost::asio::steady_timer& timer, Clock::time_point time,
               const std::stop_token& gone)
    : timer_(timer), with_client_(gone, [ends = ends_]() mutable { ends.request_stop(); }) {
  if (Clock::now() >= time) ends_.request_stop();
  timer_.expires_at(time);
  timer_.async_wait([ends = ends_](boost::system::error_code error) mutable {
    if (!error) ends.request_stop();
  });
}

std::string_view Work::first_of(size_t text) const {
  return first.empty() ? std::string_view() : first[first.size() == 1 ? 0 : text];
}

int64_t Work::bytes(size_t text) const {
  return static_cast<int64_t>(prompt_bytes + first_of(text).size() + texts[text].size());
}

int64_t Work::bytes() const {
  int64_t bytes = 0;
  for (size_t i = 0; i < texts.size(); ++i) bytes += this->bytes(i);
  return bytes;
}

bool Work::may_share(const Work& other) const {
  return task == other.task && first.empty() == other.first.empty() &&
         phasor::may_share(options, other.options);
}

ModelQueue::ModelQueue(std::string name, std::shared_ptr<const phasor::Model> model,
                       phasor::EncoderOptions options, QueueOptions limits, Metrics& metrics)
    : name_(std::move(name)),
      model_(std::move(model)),
      encoder_(model_, std::move(options)),
      limits_(limits),
      metrics_(metrics),
      max_tokens_(std::min(encoder_.max_tokens(), std::max(kLeastText, limits_.max_batch_tokens))),
      vector_width_(model_->has_sentence() ? encoder_.embedding_width() : 0),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

ModelQueue::~ModelQueue() {
  thread_.request_stop();
  thread_.join();
  answers_.join();
}

int64_t ModelQueue::num_labels() const {
  const phasor::Weights& weights = model_->weights();
  const auto& head = weights.classifier ? weights.classifier : weights.token_classifier;
  return head ? std::ssize(head->labels) : 0;
}

int64_t ModelQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(queue_) + std::ssize(ended_);
}

void ModelQueue::add(Work work) {
  Requests request;
  request.push_back({std::move(work)});
  {
    const std::lock_guard lock(mutex_);
    if (std::ssize(queue_) + std::ssize(ended_) >= limits_.max_queue)
      refuse(429, "Overloaded", "the queue is full (--max-queue); try again later");
    queue_.splice(queue_.end(), request);
  }
  ready_.notify_one();
}

void ModelQueue::work(const std::stop_token& stop) {
  while (true) {
    std::vector<Part> batch;
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, stop, [&] { return !queue_.empty(); });
      if (queue_.empty()) return;  // and nothing more comes
      drop_abandoned();
      if (!queue_.empty()) batch = next_batch();
    }
    answer();
    if (!batch.empty()) run(batch);
  }
}

/// Requests whose client has gone, or whose time is up before they have begun, leave the queue.
void ModelQueue::drop_abandoned() {
  const Clock::time_point now = Clock::now();
  for (auto next = queue_.begin(); next != queue_.end();) {
    const auto request = next++;
    if (!request->has_gone() && (request->work.deadline > now || request->done > 0)) continue;
    request->failure = request->has_gone() ? kGone : kLate;
    ended_.splice(ended_.end(), queue_, request);
    metrics_.dropped();
  }
}

/// Texts of the first request and of those that can share its run. Half of the batch is for those
/// with the fewest texts left, so that a small request does not wait for large ones; the oldest
/// take the rest, so that large ones end one after the other. One text alone may be more than a
/// batch.
std::vector<ModelQueue::Part> ModelQueue::next_batch() {
  std::vector<Part> batch;
  for (auto request = queue_.begin(); request != queue_.end(); ++request) {
    if (request == queue_.begin() || request->work.may_share(queue_.front().work))
      batch.push_back({request, request->done});
  }
  int64_t left = limits_.max_batch_tokens;  // about
  const auto take = [&](Part& part, int64_t share) {
    const Work& work = part.request->work;
    for (; part.first + part.count < work.texts.size() && share > 0; ++part.count) {
      const int64_t tokens = about_tokens(*this, work, part.first + part.count);
      share -= tokens;
      left -= tokens;
    }
  };
  std::vector<Part*> smallest;
  for (Part& part : batch) smallest.push_back(&part);
  std::ranges::stable_sort(smallest, {}, [](const Part* part) {
    return part->request->work.texts.size() - part->first;
  });
  const int64_t half = left / 2;
  for (Part* const part : smallest) take(*part, left - half);
  if (batch[0].count == 0) take(batch[0], 1);  // where long texts have left nothing: it goes on
  for (Part& part : batch) take(part, left);
  std::erase_if(batch, [](const Part& part) { return part.count == 0; });
  return batch;
}

/// What is made of the texts of each part.
std::vector<Columns> ModelQueue::results_of(std::span<const Part> parts, std::stop_token stop) {
  const Work& work = parts[0].request->work;
  Batch batch{.options = work.options};
  batch.options.max_tokens = longest(*this, work);
  batch.options.stop = std::move(stop);
  for (const auto& [request, first, count] : parts) {
    for (size_t i = first; i < first + count; ++i) {
      batch.texts.push_back(request->work.texts[i]);
      if (!work.first.empty()) batch.first.push_back(request->work.first_of(i));
    }
  }
  std::vector<Columns> results(parts.size());
  size_t part = 0, left = parts[0].count;
  work.task->run(encoder_, batch, [&](const std::vector<phasor::ResultArray>& made, size_t size) {
    for (size_t first = 0; first < size;) {
      if (left == 0) left = parts[++part].count;
      const size_t count = std::min(left, size - first);
      results[part].add(made, static_cast<int64_t>(first), static_cast<int64_t>(count));
      first += count;
      left -= count;
    }
  });
  return results;
}

void ModelQueue::run_parts(std::span<const Part> parts) {
  const Work& work = parts[0].request->work;
  const RunEnd end(run_time_, Clock::now() + limits_.max_run,
                   parts.size() == 1 ? work.gone : std::stop_token());
  std::vector<Columns> results;
  try {
    results = results_of(parts, end.token());
  } catch (const phasor::internal::TooLong& error) {
    if (parts.size() > 1) throw;  // each is run alone
    invalid(
        "{} {} has {} tokens, more than {}, which the model takes; shorten it, or leave out "
        "`truncate`",
        work.first.empty() ? "text" : "pair", static_cast<int64_t>(parts[0].first) + error.text,
        error.tokens, longest(*this, work));
  }
  int64_t texts = 0, tokens = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [request, first, count] = parts[i];
    texts += static_cast<int64_t>(count);
    for (const int64_t each : results[i].all<int64_t>("num_tokens")) tokens += each;
    if (request->done == 0)
      request->results = std::move(results[i]);
    else
      request->results.add(results[i].arrays(), 0, static_cast<int64_t>(count));
    request->done += count;
  }
  if (work.task->uses != 0) metrics_.ran(texts, tokens);
}

/// False where it fails, and each part may do better alone: of several one may be at fault. But
/// where they were late, each alone could take as long as all have taken.
bool ModelQueue::try_run(std::span<const Part> parts) try {
  run_parts(parts);
  return true;
} catch (...) {
  const Failure failure = failure_of(std::current_exception());
  if (parts.size() > 1 && failure.status != kLate.status) return false;
  for (const Part& part : parts) {
    part.request->failure = part.request->has_gone() ? kGone : failure;
    if (part.request->has_gone()) metrics_.dropped();
  }
  return true;
}

void ModelQueue::run(const std::vector<Part>& batch) {
  if (!try_run(batch)) {
    for (const Part& part : batch) try_run(std::span(&part, 1));
  }
  {
    const std::lock_guard lock(mutex_);
    for (const Part& part : batch) {
      if (part.request->ended()) ended_.splice(ended_.end(), queue_, part.request);
    }
    // Others are next; requests that share this one's runs keep their order.
    Requests rest;
    for (auto next = queue_.begin(); next != queue_.end();) {
      const auto request = next++;
      if (request->work.may_share(batch[0].request->work)) rest.splice(rest.end(), queue_, request);
    }
    queue_.splice(queue_.end(), rest);
  }
  answer();
}

/// While the engine goes on.
void ModelQueue::answer() {
  const std::lock_guard lock(mutex_);
  if (!ended_.empty()) boost::asio::post(answers_, [this] { send_answers(); });
}

/// A request leaves before its answer is sent: its client may send the next at once.
void ModelQueue::send_answers() {
  while (true) {
    Requests one;
    {
      const std::lock_guard lock(mutex_);
      if (ended_.empty()) return;
      one.splice(one.end(), ended_, ended_.begin());
    }
    Pending& pending = one.front();
    if (pending.failure.status != 0) pending.results = {};
    pending.work.done(pending.work, pending.results, pending.failure);
  }
}

}  // namespace infer
