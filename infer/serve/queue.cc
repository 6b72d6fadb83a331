#include "infer/serve/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <new>

#include "infer/commands.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr int64_t kDefaultTokens = 2048;  // as EmbedOptions::max_tokens has it
constexpr int64_t kSmallAnswer = 65536;   // bytes; takes no longer than to wake another thread
constexpr std::chrono::milliseconds kNoMemory{100};  // until others may have freed some

int64_t max_tokens_of(const phasor::Model& model) {
  const int64_t own = model.text().max_tokens;
  const int64_t trained = model.config().max_positions;
  const int64_t most = own > 0 ? own : trained > 0 ? trained : kDefaultTokens;
  return std::min(most, model.max_tokens().value_or(most));
}

}  // namespace

const Failure kLate = {504, "Timeout", "the request took longer than the server allows"};
const Failure kGone = {499, "Gone", "the client has gone"};

Failure failure_of(const std::exception_ptr& exception) try {
  try {
    std::rethrow_exception(exception);
  } catch (const UsageError& error) {
    return {422, "Validation", error.what()};
  } catch (const phasor::InvalidArgument& error) {
    return {422, "Validation", error.what()};
  } catch (const phasor::Error& error) {
    if (error.code() == phasor::ErrorCode::kCancelled) return kLate;
    return {424, "Backend", error.what()};
  } catch (const std::exception& error) {
    return {424, "Backend", error.what()};
  }
} catch (...) {
  return {424, "Backend", "out of memory"};  // so short that it asks for none
}

size_t Work::bytes(size_t text) const {
  return query.size() + texts[text].size() + (second.empty() ? 0 : second[text].size());
}

ModelQueue::ModelQueue(std::string name, std::shared_ptr<const phasor::Model> model,
                       phasor::EncoderOptions options, QueueOptions limits, Metrics& metrics)
    : name_(std::move(name)),
      model_(std::move(model)),
      encoder_(model_, std::move(options)),
      limits_(limits),
      metrics_(metrics),
      max_tokens_(max_tokens_of(*model_)),
      vector_width_(model_->has_sentence() ? encoder_.embedding_width() : 0),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

ModelQueue::~ModelQueue() {
  thread_.request_stop();
  thread_.join();
  answers_.join();
}

int64_t ModelQueue::num_labels() const {
  const auto& head = model_->weights().classifier;
  return head ? std::ssize(head->labels) : 0;
}

int64_t ModelQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(queue_) + answering_;
}

/// Of the values that may come of a text. Normalization may make 6 tokens of a byte (U+FDFA).
int64_t ModelQueue::most_result_bytes(const Work& work, size_t text) const {
  constexpr int64_t kSpecialTokens = 4;
  const int64_t tokens = 6 * static_cast<int64_t>(work.bytes(text)) + kSpecialTokens;
  constexpr int64_t kFloat = sizeof(float);
  switch (work.kind.task) {
    case RunKind::Task::kEmbed:
      return vector_width_ * kFloat;
    case RunKind::Task::kStates:
      return std::min(tokens, max_tokens_) * model_->config().d_model * kFloat;
    case RunKind::Task::kTokenize:
      return tokens * static_cast<int64_t>(sizeof(std::string) + sizeof(int32_t));
    default:
      return 2 * num_labels() * kFloat;
  }
}

ModelQueue::Added ModelQueue::add(Work work) {
  Requests request;
  Pending& pending = request.emplace_back(Pending{std::move(work)});
  const size_t texts = pending.work.texts.size();
  pending.results.reserve(texts);
  for (size_t i = 0; i < texts; ++i) {
    pending.bytes += static_cast<int64_t>(sizeof(TextResult) + pending.work.bytes(i)) +
                     most_result_bytes(pending.work, i);
  }
  if (pending.bytes > limits_.max_queue_bytes) return Added::kTooLarge;
  {
    const std::lock_guard lock(mutex_);
    if (std::ssize(queue_) + answering_ >= limits_.max_queue ||
        bytes_ + pending.bytes > limits_.max_queue_bytes)
      return Added::kFull;
    bytes_ += pending.bytes;
    queue_.splice(queue_.end(), request);
  }
  ready_.notify_one();
  return Added::kYes;
}

void ModelQueue::work(const std::stop_token& stop) {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, stop, [&] { return !queue_.empty(); });
      if (queue_.empty()) return;  // and nothing more comes
    }
    try {
      drop_abandoned();
      if (const std::vector<Part> batch = next_batch(); !batch.empty()) run(batch);
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kNoMemory);
    }
  }
}

/// Requests whose client has gone, or whose time is up before they have begun, leave the queue.
void ModelQueue::drop_abandoned() {
  Requests dropped;
  {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    for (auto next = queue_.begin(); next != queue_.end();) {
      const auto request = next++;
      const bool gone = request->work.gone.stop_requested();
      if (!gone && (request->work.deadline > now || !request->results.empty())) continue;
      request->failure = gone ? kGone : kLate;
      dropped.splice(dropped.end(), queue_, request);
      ++answering_;
      metrics_.dropped();
    }
  }
  answer(std::move(dropped));
}

/// The engine counts tokens; here they are guessed from the bytes. The part that is cut off is
/// tokenized, too, so it counts.
int64_t ModelQueue::about_tokens(const Work& work, size_t text) const {
  const auto bytes = static_cast<int64_t>(work.bytes(text));
  return std::max(std::min(bytes / 3 + 2, max_tokens_), bytes / 64);
}

/// Texts of the first request and of those that can share its run, up to the budget: each gets its
/// part of the budget first, so that a small request does not wait for a large one.
std::vector<ModelQueue::Part> ModelQueue::next_batch() {
  const std::lock_guard lock(mutex_);
  std::vector<Part> batch;
  if (queue_.empty()) return batch;
  const RunKind& kind = queue_.front().work.kind;
  for (auto request = queue_.begin(); request != queue_.end(); ++request) {
    if (request->work.kind == kind) batch.push_back({request, request->results.size(), 0});
  }
  int64_t left = limits_.max_batch_tokens;
  const auto take = [&](Part& part, int64_t budget) {
    const Work& work = part.request->work;
    while (part.first + part.count < work.texts.size() && budget > 0) {
      const int64_t tokens = about_tokens(work, part.first + part.count);
      budget -= tokens;
      left -= tokens;
      ++part.count;
    }
  };
  auto sharing = std::ssize(batch);
  for (Part& part : batch) {
    take(part, left > 0 ? std::max<int64_t>(1, left / sharing) : 0);
    --sharing;
  }
  for (Part& part : batch) take(part, left);
  std::erase_if(batch, [](const Part& part) { return part.count == 0; });
  return batch;
}

void ModelQueue::run_parts(std::span<const Part> parts) {
  std::vector<std::string_view> texts, second;
  for (const auto& [request, first, count] : parts) {
    const Work& work = request->work;
    for (size_t i = first; i < first + count; ++i) {
      if (work.kind.task == RunKind::Task::kRerank) {
        texts.push_back(work.query);
        second.push_back(work.texts[i]);
      } else {
        texts.push_back(work.texts[i]);
        if (!work.second.empty()) second.push_back(work.second[i]);
      }
    }
  }
  const Clock::time_point start = Clock::now();
  std::vector<TextResult> results = run_texts(parts[0].request->work.kind, texts, second);
  int64_t tokens = 0;
  for (const TextResult& result : results) tokens += result.num_tokens;
  metrics_.batch(std::ssize(results), tokens, Clock::now() - start);
  auto result = results.begin();
  for (const auto& [request, first, count] : parts) {
    for (size_t i = 0; i < count; ++i, ++result) request->results.push_back(std::move(*result));
  }
}

void ModelQueue::run(const std::vector<Part>& batch) {
  const auto run_or_fail = [&](std::span<const Part> parts) {
    try {
      run_parts(parts);
      return true;
    } catch (...) {
      if (parts.size() == 1) parts[0].request->failure = failure_of(std::current_exception());
      return false;
    }
  };
  if (!run_or_fail(batch) && batch.size() > 1) {  // one may be at fault: each alone
    for (const Part& part : batch) run_or_fail(std::span(&part, 1));
  }
  Requests ended;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [request, first, count] : batch) {
      // What is not done goes behind what has not begun.
      Requests& to = request->ended() ? ended : queue_;
      if (request->ended()) ++answering_;
      to.splice(to.end(), queue_, request);
    }
  }
  answer(std::move(ended));
}

void ModelQueue::answer(Requests ended) {
  if (ended.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_.splice(ended_.end(), ended);
  }
  if (is_idle()) return send_answers();
  try {
    boost::asio::post(answers_, [this] { send_answers(); });
  } catch (const std::bad_alloc&) {
    send_answers();
  }
}

void ModelQueue::send_answers() {
  Requests ended;
  {
    const std::lock_guard lock(mutex_);
    ended.swap(ended_);
  }
  for (Pending& pending : ended) {
    {  // before its client can send the next
      const std::lock_guard lock(mutex_);
      --answering_;
      bytes_ -= pending.bytes;
    }
    const bool failed = pending.failure.status != 0;
    pending.work.done(failed ? std::vector<TextResult>() : std::move(pending.results),
                      pending.failure);
  }
}

/// Whether the engine's thread may write an answer as well as wait.
bool ModelQueue::is_idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && bytes_ <= kSmallAnswer;
}

}  // namespace infer
