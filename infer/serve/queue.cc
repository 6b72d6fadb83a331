#include "infer/serve/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "infer/commands.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr int64_t kDefaultTokens = 2048;  // as EmbedOptions::max_tokens has it

std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

const Failure kLate = {504, "Timeout", "the request waited longer than the server allows"};

}  // namespace

Failure failure_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const UsageError& error) {
    return {422, "Validation", error.what()};
  } catch (const phasor::InvalidArgument& error) {
    return {422, "Validation", error.what()};
  } catch (const phasor::Error& error) {
    if (error.code() == phasor::ErrorCode::kCancelled) return kLate;
    return {424, "Backend", error.what()};
  } catch (const std::bad_alloc&) {
    return {424, "Backend", "there is not enough memory for this request"};
  } catch (const std::exception& error) {
    return {424, "Backend", error.what()};
  }
}

ModelQueue::ModelQueue(std::string name, std::shared_ptr<const phasor::Model> model,
                       phasor::EncoderOptions options, QueueOptions limits, Metrics& metrics)
    : name_(std::move(name)),
      model_(std::move(model)),
      encoder_(model_, std::move(options)),
      limits_(limits),
      metrics_(metrics),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

ModelQueue::~ModelQueue() {
  thread_.request_stop();
  thread_.join();
}

int64_t ModelQueue::max_tokens() const {
  const int64_t own = model_->has_sentence() ? model_->sentence().max_tokens : 0;
  const int64_t trained = model_->config().max_positions;
  const int64_t most = own > 0 ? own : trained > 0 ? trained : kDefaultTokens;
  return std::min(most, model_->max_tokens().value_or(most));
}

int64_t ModelQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(queue_);
}

bool ModelQueue::add(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (std::ssize(queue_) >= limits_.max_queue) return false;
    queue_.push_back(std::make_unique<Pending>(Pending{std::move(work)}));
  }
  ready_.notify_one();
  return true;
}

void ModelQueue::work(const std::stop_token& stop) {
  while (true) {
    std::vector<Part> batch;
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, stop, [&] { return !queue_.empty(); });
      if (queue_.empty()) return;  // and nothing more comes
    }
    drop_abandoned();
    batch = next_batch();
    if (!batch.empty()) run(batch);
  }
}

/// Requests whose client has gone or whose time is up leave the queue.
void ModelQueue::drop_abandoned() {
  std::vector<std::unique_ptr<Pending>> late;
  {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    for (std::unique_ptr<Pending>& pending : queue_) {
      const bool gone = pending->work.gone.stop_requested();
      if (gone || pending->work.deadline <= now) late.push_back(std::move(pending));
    }
    std::erase(queue_, nullptr);
  }
  for (const std::unique_ptr<Pending>& pending : late) {
    metrics_.dropped();
    pending->work.done({}, kLate);
  }
}

/// Tokens are counted by the engine; here they are guessed from the bytes.
int64_t ModelQueue::about_tokens(const Work& work, size_t text) const {
  const size_t bytes =
      work.texts[text].size() + (work.second.empty() ? 0 : work.second[text].size());
  return std::min(static_cast<int64_t>(bytes / 3) + 2, max_tokens());
}

/// Texts of the first request and of those that can share its run, up to the budget: each gets its
/// part of the budget first, so that a small request does not wait for a large one.
std::vector<ModelQueue::Part> ModelQueue::next_batch() {
  const std::lock_guard lock(mutex_);
  std::vector<Part> batch;
  if (queue_.empty()) return batch;
  const RunKind kind = queue_.front()->work.kind;
  for (const std::unique_ptr<Pending>& pending : queue_) {
    if (pending->work.kind == kind) batch.push_back({pending.get(), pending->next(), 0});
  }
  int64_t left = limits_.max_batch_tokens;
  const auto take = [&](Part& part, int64_t budget) {
    const Work& work = part.pending->work;
    while (part.first + part.count < work.texts.size() && budget > 0) {
      const int64_t tokens = about_tokens(work, part.first + part.count);
      budget -= tokens;
      left -= tokens;
      ++part.count;
    }
  };
  auto sharing = std::ssize(batch);
  for (Part& part : batch) take(part, left / sharing--);
  for (Part& part : batch) take(part, left);
  std::erase_if(batch, [](const Part& part) { return part.count == 0; });
  return batch;
}

void ModelQueue::run(const std::vector<Part>& batch) {
  const auto results_of = [&](std::span<const Part> parts) {
    std::vector<std::string_view> texts, second;
    for (const auto& [pending, first, count] : parts) {
      const Work& work = pending->work;
      for (size_t i = first; i < first + count; ++i) {
        texts.push_back(work.texts[i]);
        if (!work.second.empty()) second.push_back(work.second[i]);
      }
    }
    const Clock::time_point start = Clock::now();
    std::vector<TextResult> results = run_texts(parts[0].pending->work.kind, texts, second);
    int64_t tokens = 0;
    for (const TextResult& result : results) tokens += result.num_tokens;
    metrics_.batch(std::ssize(results), tokens, Clock::now() - start);
    auto result = results.begin();
    for (const auto& [pending, first, count] : parts) {
      for (size_t i = 0; i < count; ++i) pending->results.push_back(std::move(*result++));
    }
  };
  std::vector<std::pair<Pending*, Failure>> failed;
  const auto run_alone = [&](const Part& part) {
    try {
      results_of(std::span(&part, 1));
    } catch (...) {
      failed.emplace_back(part.pending, failure_of(std::current_exception()));
    }
  };
  try {
    results_of(batch);
  } catch (...) {  // the fault of one: the others have their answers
    if (batch.size() == 1) {
      failed.emplace_back(batch[0].pending, failure_of(std::current_exception()));
    } else {
      std::ranges::for_each(batch, run_alone);
    }
  }
  const auto failure = [&](const Pending* pending) -> const Failure* {
    const auto found = std::ranges::find(failed, pending, &std::pair<Pending*, Failure>::first);
    return found == failed.end() ? nullptr : &found->second;
  };
  std::vector<std::unique_ptr<Pending>> ended, unfinished;
  {
    const std::lock_guard lock(mutex_);
    for (std::unique_ptr<Pending>& pending : queue_) {
      const bool ran = std::ranges::find(batch, pending.get(), &Part::pending) != batch.end();
      if (pending->ended() || failure(pending.get()) != nullptr) {
        ended.push_back(std::move(pending));
      } else if (ran) {
        unfinished.push_back(std::move(pending));
      }
    }
    std::erase(queue_, nullptr);
    // What is not done goes behind what has not begun.
    for (std::unique_ptr<Pending>& pending : unfinished) queue_.push_back(std::move(pending));
  }
  for (const std::unique_ptr<Pending>& pending : ended) {
    const Failure* const why = failure(pending.get());
    pending->work.done(why ? std::vector<TextResult>() : std::move(pending->results),
                       why ? *why : Failure());
  }
}

std::vector<TextResult> ModelQueue::run_texts(const RunKind& kind,
                                              const std::vector<std::string_view>& texts,
                                              const std::vector<std::string_view>& second) {
  const phasor::Overflow overflow =
      kind.truncate ? phasor::Overflow::kTruncate : phasor::Overflow::kError;
  std::vector<TextResult> results;
  if (kind.task == RunKind::Task::kEmbed) {
    phasor::EmbedOptions options{.prompt = kind.prompt, .overflow = overflow};
    options.pooling = model_->sentence().pooling;
    options.pooling->normalize = kind.normalize;
    const phasor::Embeddings embeddings = encoder_.embed(texts, options);
    for (int64_t i = 0; i < embeddings.size(); ++i)
      results.push_back({copy(embeddings[i]), {}, embeddings.report(i).num_tokens});
  } else if (kind.task == RunKind::Task::kStates) {
    std::vector<std::vector<int32_t>> ids;
    for (const std::string_view text : texts) {
      phasor::Tokens tokens =
          model_->tokenizer().encode(text, {.max_tokens = kind.truncate ? max_tokens() : 0});
      if (std::ssize(tokens.ids) > max_tokens()) {
        throw phasor::InvalidArgument(fmt::format("a text has {} tokens; the model takes {}",
                                                  tokens.ids.size(), max_tokens()));
      }
      ids.push_back(std::move(tokens.ids));
    }
    const phasor::Encoding encoding = encoder_.encode_ids(ids);
    for (int64_t i = 0; i < encoding.num_sequences(); ++i)
      results.push_back({copy(encoding.hidden(i)), {}, encoding.num_tokens(i)});
  } else {
    const bool pairs = kind.task == RunKind::Task::kClassifyPairs;
    const phasor::ClassifyOptions options{.overflow = overflow};
    const phasor::Classification classes =
        pairs ? encoder_.classify(texts, second, options) : encoder_.classify(texts, options);
    for (int64_t i = 0; i < classes.size(); ++i)
      results.push_back(
          {copy(classes.logits(i)), copy(classes.probabilities(i)), classes.report(i).num_tokens});
  }
  return results;
}

}  // namespace infer
