#include "infer/serve/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cmath>
#include <new>
#include <optional>
#include <utility>

#include "files/json_writer.h"
#include "infer/cli/command_line.h"
#include "infer/serve/fields.h"
#include "outputs/texts.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr int64_t kDefaultTokens = 2048;  // as TextOptions::max_tokens has it
constexpr int64_t kSmallAnswer = 65536;   // bytes; take no longer than to wake another thread
constexpr int64_t kLeastText = 2048;      // tokens that a text may have, however small batches are
constexpr int64_t kTextBytes = 128;       // of a text's result, beside its values
constexpr int64_t kLeastTokens = 64;      // of a batch, however slow the engine is
constexpr double kLongTrial = 0.1;        // seconds

/// {"score":0.7400000095,"label":"positive"} for each label.
int64_t label_bytes_of(const phasor::Model& model) {
  constexpr int64_t kBeside = 48;
  int64_t bytes = 0;
  if (const auto& head = model.weights().classifier) {
    for (const std::string& label : head->labels)
      bytes += std::ssize(phasor::internal::json_string(label)) + kBeside;
  }
  return bytes;
}

/// As the model has it; fewer, where a run would take much more memory than the model, or than
/// batches have.
int64_t max_tokens_of(const phasor::Encoder& encoder, const QueueOptions& limits) {
  const phasor::Model& model = encoder.model();
  const int64_t own = model.text().max_tokens;
  const int64_t trained = model.config().max_positions;
  const int64_t wanted = own > 0 ? own : trained > 0 ? trained : kDefaultTokens;
  const int64_t most = std::min(
      {wanted, model.max_tokens().value_or(wanted), std::max(kLeastText, limits.max_batch_tokens)});
  return phasor::internal::affordable_tokens(most, model, encoder.threads());
}

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

size_t Work::bytes(size_t text) const {
  return kind.prompt.size() + query.size() + texts[text].size() +
         (second.empty() ? 0 : second[text].size());
}

ModelQueue::ModelQueue(std::string name, std::shared_ptr<const phasor::Model> model,
                       phasor::EncoderOptions options, QueueOptions limits, Metrics& metrics)
    : name_(std::move(name)),
      model_(std::move(model)),
      encoder_(model_, std::move(options)),
      limits_(limits),
      metrics_(metrics),
      max_tokens_(max_tokens_of(encoder_, limits_)),
      vector_width_(model_->has_sentence() ? encoder_.embedding_width() : 0),
      label_bytes_(label_bytes_of(*model_)),
      seconds_a_token_(time_a_token()),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

ModelQueue::~ModelQueue() {
  thread_.request_stop();
  thread_.join();
  run_time_.cancel();  // of a batch that failed; join() would wait for it
  answers_.join();
}

/// Of the second run of its kind, of a few tokens, and of more where these take little time. 0
/// where it fails: as every request will.
double ModelQueue::time_a_token() try {
  if (limits_.seconds_a_token > 0) return limits_.seconds_a_token;
  double seconds = 0;
  for (const int64_t tokens : {8, 8, 64, 64}) {
    const std::vector<int32_t> ids(std::min(tokens, max_tokens_));
    const Clock::time_point start = Clock::now();
    encoder_.encode_ids(ids);
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds > kLongTrial) return seconds / static_cast<double>(ids.size());
  }
  return seconds / static_cast<double>(std::min<int64_t>(64, max_tokens_));
} catch (const phasor::Error&) {
  return 0;
}

int64_t ModelQueue::num_labels() const {
  const auto& head = model_->weights().classifier;
  return head ? std::ssize(head->labels) : 0;
}

int64_t ModelQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(queue_) + answering_;
}

/// A byte is a token at most, before a text is cut. Where nothing is cut, normalization may make
/// six of one (U+FDFA).
int64_t ModelQueue::most_tokens(const Work& work, size_t text) const {
  constexpr int64_t kSpecialTokens = 4;
  const int64_t tokens = 6 * static_cast<int64_t>(work.bytes(text)) + kSpecialTokens;
  if (work.kind.task == RunKind::Task::kLabel) return tokens;  // all of them, in windows
  const auto bytes = static_cast<int64_t>(work.bytes(text)) + kSpecialTokens;
  if (work.kind.task != RunKind::Task::kTokens) return std::min(bytes, max_tokens_);
  const int64_t run = std::min(bytes + 1, longest(work.kind));  // with a marker
  const auto& expansion = model_->token_vectors().expansion;
  return std::max(run, expansion && work.kind.is_query ? expansion->length : 0);
}

/// The tokens of a text that are run at most.
int64_t ModelQueue::longest(const RunKind& kind) const {
  const bool ranks = kind.task == RunKind::Task::kRerank && ranks_by_tokens();
  if (kind.task != RunKind::Task::kTokens && !ranks) return max_tokens_;
  const int64_t own = model_->token_vectors().side(kind.is_query).max_tokens;
  return own > 0 ? own : max_tokens_;
}

/// Of a text's results, also while they are in the batch and on their way here.
int64_t ModelQueue::most_numbers(const Work& work, size_t text) const {
  using Task = RunKind::Task;
  const int64_t tokens = most_tokens(work, text), width = model_->config().d_model;
  switch (work.kind.task) {
    case Task::kEmbed:
      return 4 * vector_width_;
    case Task::kTokenize:
      return 0;
    case Task::kStates:
      return 2 * tokens * width;
    case Task::kLabel: {            // states, logits and spans
      constexpr int64_t kRows = 3;  // of a token: windows overlap by half, and are then averaged
      constexpr int64_t kSpan = sizeof(phasor::LabelledSpan) / sizeof(float);
      const auto labels = std::ssize(model_->weights().token_classifier->labels);
      return tokens * (kRows * width + 4 * labels + kSpan);
    }
    case Task::kSparse: {  // ids and weights
      const phasor::SparseConfig& sparse = model_->sparse();
      const bool of_tokens = sparse.kind == phasor::SparseConfig::Kind::kTokens ||
                             (work.kind.is_query && !sparse.query_weights.empty());
      return 4 * (of_tokens ? tokens : model_->config().vocab_size);
    }
    case Task::kTokens:
      return 2 * tokens * model_->token_vectors().width();
    default:
      return 4 * num_labels();
  }
}

int64_t ModelQueue::most_bytes(const Work& work) const {
  int64_t bytes = 0;
  for (size_t i = 0; i < work.texts.size(); ++i)
    bytes +=
        static_cast<int64_t>(work.bytes(i) + most_numbers(work, i) * sizeof(float)) + kTextBytes;
  if (work.kind.task == RunKind::Task::kRerank && ranks_by_tokens()) {  // those of a batch
    const phasor::TokenVectorConfig& config = model_->token_vectors();
    const int64_t expanded = config.expansion ? config.expansion->length : 0;
    const int64_t query =
        std::max(longest({.task = RunKind::Task::kTokens, .is_query = true}), expanded);
    const int64_t document = longest(work.kind);
    int64_t tokens = query;
    for (size_t i = 0; i < work.texts.size(); ++i)
      tokens += std::min(static_cast<int64_t>(work.bytes(i)), document);
    tokens = std::min(tokens, limits_.max_batch_tokens + query + document);
    bytes += 2 * tokens * model_->token_vectors().width() * int64_t{sizeof(float)};
  }
  return bytes;
}

/// About how long a request of so many tokens will take, from now to its answer. Of each batch one
/// half is shared equally, and the other half goes to the oldest.
std::chrono::duration<double> ModelQueue::wait_of(int64_t tokens) const {
  const int64_t shared = 2 * (std::ssize(queue_) + 1) * tokens;
  return std::chrono::duration<double>(seconds_a_token_ *
                                       static_cast<double>(std::min(tokens_, shared)));
}

void ModelQueue::add(Work work) {
  Requests request;
  Pending& pending = request.emplace_back(Pending{std::move(work)});
  pending.results.reserve(pending.work.texts.size());
  pending.tokens = tokens_left(pending);
  {
    const std::lock_guard lock(mutex_);
    const auto wait = wait_of(pending.tokens);
    const auto refuse_unless = [&](bool fits, const char* why) {
      const auto half = static_cast<int64_t>(std::ceil(wait.count() / 2));
      if (!fits) throw Refusal{{429, "Overloaded", why, std::max<int64_t>(1, half)}};
    };
    refuse_unless(std::ssize(queue_) + answering_ < limits_.max_queue,
                  "the queue is full (--max-queue); try again later");
    refuse_unless(wait <= limits_.max_wait,
                  "the requests that wait take too long (half of --timeout); try again later");
    tokens_ += pending.tokens;
    queue_.splice(queue_.end(), request);
  }
  ready_.notify_one();
}

void ModelQueue::work(const std::stop_token& stop) {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, stop, [&] { return !queue_.empty(); });
      if (queue_.empty()) return;  // and nothing more comes
    }
    drop_abandoned();
    if (const std::vector<Part> batch = next_batch(); !batch.empty()) run(batch);
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
      tokens_ -= request->tokens;
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
  if (work.kind.task == RunKind::Task::kTokenize) return bytes / 64 + 1;
  const int64_t tokens = bytes / 3 + 2;
  if (work.kind.task == RunKind::Task::kLabel)  // windows overlap by half
    return tokens > max_tokens_ ? 2 * tokens : tokens;
  return std::max(std::min(tokens, max_tokens_), bytes / 64);
}

int64_t ModelQueue::tokens_left(const Pending& pending) const {
  int64_t tokens = 0;
  for (size_t i = pending.results.size(); i < pending.work.texts.size(); ++i)
    tokens += about_tokens(pending.work, i);
  return tokens;
}

/// Texts of the first request and of those that can share its run. Half of the batch is shared
/// equally, so that a small request does not wait for a large one; then the oldest take what is
/// left, so that large ones end one after the other. By the guess all of it takes batch_time, and
/// half of max_run at most, past which its work is lost; one text alone may take longer.
std::vector<ModelQueue::Part> ModelQueue::next_batch() {
  const std::lock_guard lock(mutex_);
  std::vector<Part> batch;
  if (queue_.empty()) return batch;
  const RunKind& kind = queue_.front().work.kind;
  for (auto request = queue_.begin(); request != queue_.end(); ++request) {
    if (request->work.kind == kind) batch.push_back({request, request->results.size(), 0});
  }
  const auto tokens_in = [&](std::chrono::duration<double> time) {
    const auto most = static_cast<double>(limits_.max_batch_tokens);
    return static_cast<int64_t>(std::min(most, time.count() / seconds_a_token_));
  };
  int64_t left =
      std::min(limits_.max_batch_tokens, std::max(kLeastTokens, tokens_in(limits_.batch_time)));
  int64_t most = tokens_in(limits_.max_run / 2.0);
  bool is_first = true;
  const auto take = [&](Part& part, int64_t budget) {
    const Work& work = part.request->work;
    while (part.first + part.count < work.texts.size() && budget > 0) {
      const int64_t tokens = about_tokens(work, part.first + part.count);
      if (tokens > most && !is_first) return;
      is_first = false;
      budget -= tokens;
      left -= tokens;
      most -= tokens;
      ++part.count;
    }
  };
  auto sharing = std::ssize(batch);
  const int64_t half = left / 2;
  for (Part& part : batch) {
    take(part, left > half ? std::max<int64_t>(1, (left - half) / sharing) : 0);
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
  // It ends with its time, and when nobody waits for it any more.
  std::stop_source ends;
  run_time_.expires_at(start + limits_.max_run);
  run_time_.async_wait([ends](boost::system::error_code error) mutable {
    if (!error) ends.request_stop();
  });
  std::optional<std::stop_callback<std::function<void()>>> with_client;
  if (parts.size() == 1)
    with_client.emplace(parts[0].request->work.gone, [ends]() mutable { ends.request_stop(); });
  std::vector<TextResult> results;
  try {
    results = run_texts(parts[0].request->work.kind, texts, second, ends.get_token());
  } catch (const phasor::InvalidArgument& error) {
    if (error.code() != phasor::ErrorCode::kTooLong) throw;
    const RunKind& kind = parts[0].request->work.kind;
    invalid(
        fmt::format("a text has more tokens than {}, which the model takes; shorten it, or leave "
                    "out `truncate`",
                    longest(kind)));
  }
  run_time_.cancel();
  if (parts[0].request->work.kind.task != RunKind::Task::kTokenize) {
    int64_t tokens = 0;
    for (const TextResult& result : results) tokens += result.num_tokens;
    metrics_.batch(std::ssize(results), tokens, Clock::now() - start);
    learn_speed(parts, Clock::now() - start);
  }
  auto result = results.begin();
  for (const auto& [request, first, count] : parts) {
    for (size_t i = 0; i < count; ++i, ++result) request->results.push_back(std::move(*result));
  }
}

/// Of a batch that has been run. A small one takes longer for each token, so that it tells only
/// that the engine is faster; one that its time ended tells only that it is slower.
void ModelQueue::learn_speed(std::span<const Part> parts, Clock::duration time, bool is_late) {
  int64_t tokens = 0;
  for (const auto& [request, first, count] : parts) {
    for (size_t i = first; i < first + count; ++i) tokens += about_tokens(request->work, i);
  }
  const double seconds = std::chrono::duration<double>(time).count() / static_cast<double>(tokens);
  const std::lock_guard lock(mutex_);
  if (seconds > seconds_a_token_ ? tokens < 4 * kLeastTokens : is_late) return;
  seconds_a_token_ = (seconds_a_token_ + seconds) / 2;
}

void ModelQueue::run(const std::vector<Part>& batch) {
  const RunKind kind = batch[0].request->work.kind;
  const auto run_or_fail = [&](std::span<const Part> parts) {
    try {
      run_parts(parts);
    } catch (...) {
      const Failure failure = failure_of(std::current_exception());
      // Of several one may be at fault; but each alone could take as long as all have taken.
      const bool is_late = failure.status == kLate.status;
      if (parts.size() > 1 && !is_late) return false;
      const bool has_gone = parts.size() == 1 && parts[0].request->work.gone.stop_requested();
      if (is_late && !has_gone && kind.task != RunKind::Task::kTokenize)
        learn_speed(parts, limits_.max_run, true);
      for (const Part& part : parts) {
        const bool gone = part.request->work.gone.stop_requested();
        part.request->failure = gone ? kGone : failure;
        if (gone) metrics_.dropped();
      }
    }
    return true;
  };
  if (!run_or_fail(batch)) {
    for (const Part& part : batch) run_or_fail(std::span(&part, 1));
  }
  Requests ended;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [request, first, count] : batch) {
      const int64_t left = request->ended() ? 0 : tokens_left(*request);
      tokens_ -= std::exchange(request->tokens, left) - left;
      if (!request->ended()) continue;
      ended.splice(ended.end(), queue_, request);
      ++answering_;
    }
    // Other kinds are next; requests of this one keep their order.
    Requests rest;
    for (auto next = queue_.begin(); next != queue_.end();) {
      const auto request = next++;
      if (request->work.kind == kind) rest.splice(rest.end(), queue_, request);
    }
    queue_.splice(queue_.end(), rest);
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
  boost::asio::post(answers_, [this] { send_answers(); });
}

void ModelQueue::send_answers() {
  Requests ended;
  {
    const std::lock_guard lock(mutex_);
    ended.swap(ended_);
  }
  for (; !ended.empty(); ended.pop_front()) {  // with its texts, when it has been answered
    Pending& pending = ended.front();
    {  // before its client can send the next
      const std::lock_guard lock(mutex_);
      --answering_;
    }
    const bool failed = pending.failure.status != 0;
    pending.work.done(failed ? std::vector<TextResult>() : std::move(pending.results),
                      pending.failure);
  }
}

/// Whether the engine's thread may write the answers as well as wait.
bool ModelQueue::is_idle() const {
  const std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (const Pending& pending : ended_) {
    for (const TextResult& result : pending.results) bytes += result.bytes();
    for (const std::string& text : pending.work.texts) bytes += std::ssize(text);
  }
  return queue_.empty() && bytes <= kSmallAnswer;
}

}  // namespace infer
