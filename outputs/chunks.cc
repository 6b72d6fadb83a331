// Texts run whole, as for embed(); the states of each chunk's tokens are pooled.
#include "outputs/chunks.h"

#include <algorithm>
#include <array>
#include <utility>

#include "files/refuse.h"
#include "files/utf8.h"

namespace phasor::internal {
namespace {

constexpr std::array<std::string_view, 4> kMarks = {".", "!", "?", "…"};
constexpr std::array<std::string_view, 3> kWideMarks = {"。", "！", "？"};
constexpr std::array<std::string_view, 9> kClosing = {"\"", "'", ")",  "]", "”",
                                                      "’",  "»", "」", "』"};

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Moves `at` behind any of `words`, as often as there is one; whether there was.
bool skip(std::string_view text, std::span<const std::string_view> words, size_t& at) {
  const size_t begin = at;
  const auto is_next = [&](std::string_view word) { return text.substr(at).starts_with(word); };
  for (auto found = std::ranges::find_if(words, is_next); found != words.end();
       found = std::ranges::find_if(words, is_next)) {
    at += found->size();
  }
  return at > begin;
}

/// The part of a text between two bytes, without the spaces round it.
TextSpan trimmed_span(std::string_view text, size_t begin, size_t end) {
  while (begin < end && is_space(text[begin])) ++begin;
  while (begin < end && is_space(text[end - 1])) --end;
  return {static_cast<int64_t>(begin), static_cast<int64_t>(end)};
}

/// Tokens first to end − 1 of a batch, and the part of the text that they are pooled for.
struct Chunk {
  int64_t first = 0, end = 0;
  TextSpan span;
};

/// Of the tokens begin to end − 1, which are a text's. Those without a place in it are in none.
std::vector<Chunk> chunks_of(std::span<const TextSpan> spans, int64_t begin, int64_t end,
                             int64_t chunk_tokens, std::string_view text) {
  const std::vector<TextSpan> sentences =
      chunk_tokens > 0 ? std::vector<TextSpan>() : sentences_of(text);
  std::vector<Chunk> chunks;
  int64_t taken = 0;  // by the last chunk
  auto sentence = sentences.begin();
  for (int64_t t = begin; t < end; ++t) {
    const TextSpan& span = spans[t];
    if (span.begin >= span.end) continue;
    bool begins = chunks.empty() || taken == chunk_tokens;
    if (chunk_tokens == 0) {
      const auto found = std::find_if(sentence, sentences.end(),
                                      [&](const TextSpan& each) { return each.end > span.begin; });
      if (found == sentences.end()) continue;
      begins = chunks.empty() || found != sentence;
      sentence = found;
    }
    if (begins) {
      chunks.push_back({.first = t, .end = t, .span = chunk_tokens > 0 ? span : *sentence});
      taken = 0;
    }
    chunks.back().end = t + 1;
    if (chunk_tokens > 0) chunks.back().span.end = std::max(chunks.back().span.end, span.end);
    ++taken;
  }
  for (Chunk& chunk : chunks) chunk.span = trimmed_span(text, chunk.span.begin, chunk.span.end);
  return chunks;
}

/// Of the tokens begin to end − 1, which are a text's, those that end in each of the parts.
std::vector<Chunk> chunks_in(std::span<const TextSpan> parts, std::span<const TextSpan> spans,
                             int64_t begin, int64_t end) {
  std::vector<int64_t> ends;  // of tokens; those without a place end where the last one does
  for (int64_t t = begin; t < end; ++t)
    ends.push_back(std::max(spans[t].end, ends.empty() ? 0 : ends.back()));
  std::vector<Chunk> chunks;
  for (const TextSpan& part : parts) {
    const auto behind = [&](int64_t place) {
      return begin + (std::ranges::upper_bound(ends, place) - ends.begin());
    };
    Chunk chunk = {.first = behind(part.begin), .end = behind(part.end), .span = part};
    const auto has_no_place = [&](int64_t t) { return spans[t].begin >= spans[t].end; };
    while (chunk.first < chunk.end && has_no_place(chunk.end - 1)) --chunk.end;
    chunks.push_back(chunk);
  }
  return chunks;
}

/// Turns places in bytes into places in characters.
void count_characters(std::string_view text, std::vector<TextSpan>& spans) {
  const std::vector<int64_t> starts = starts_of_characters(text);
  const auto character_at = [&](int64_t byte) {
    return std::ranges::lower_bound(starts, byte) - starts.begin();
  };
  for (TextSpan& span : spans) span = {character_at(span.begin), character_at(span.end)};
}

/// The chunks that are given, in bytes.
std::vector<std::vector<TextSpan>> given_chunks(const EmbedInput& input,
                                                const ChunkOptions& options) {
  if (options.spans.empty()) return {};
  if (options.chunk_tokens > 0)
    throw InvalidArgument("give the chunks' spans or the number of their tokens, not both");
  if (std::ssize(options.spans) != input.size()) {
    refuse<InvalidArgument>("there are {} texts, and the chunks of {}", input.size(),
                            options.spans.size());
  }
  std::vector<std::vector<TextSpan>> all = options.spans;
  for (int64_t i = 0; i < input.size(); ++i) {
    std::vector<int64_t> starts;
    if (options.offset_unit == OffsetUnit::kCharacters)
      starts = starts_of_characters(input.first[i]);
    const int64_t length = starts.empty() ? std::ssize(input.first[i]) : std::ssize(starts) - 1;
    for (auto& [begin, end] : all[i]) {
      if (begin < 0 || begin > end || end > length) {
        refuse<InvalidArgument>("text {}: the chunk [{}, {}) is not in its {} {}", i, begin, end,
                                length, starts.empty() ? "bytes" : "characters");
      }
      if (!starts.empty()) begin = starts[begin], end = starts[end];
    }
  }
  return all;
}

}  // namespace

std::vector<TextSpan> sentences_of(std::string_view text) {
  std::vector<TextSpan> sentences;
  size_t begin = 0;
  const auto end_at = [&](size_t end) {
    const TextSpan span = trimmed_span(text, std::exchange(begin, end), end);
    if (span.begin < span.end) sentences.push_back(span);
  };
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\n') {
      size_t next = at + 1;
      while (next < text.size() && is_space(text[next]) && text[next] != '\n') ++next;
      if (next < text.size() && text[next] == '\n') end_at(at);
      at = next;
    } else if (skip(text, kWideMarks, at)) {
      skip(text, kClosing, at);
      end_at(at);
    } else if (skip(text, kMarks, at)) {
      skip(text, kClosing, at);
      size_t next = at;
      while (next < text.size() && is_space(text[next])) ++next;
      const bool goes_on = next < text.size() && text[next] >= 'a' && text[next] <= 'z';
      if (next > at && !goes_on) end_at(at);
    } else {
      ++at;
    }
  }
  end_at(text.size());
  return sentences;
}

ChunkVectors embed_chunks(const Model& model, const Threads& threads, const EmbedInput& input,
                          const ChunkOptions& options, const EncodeBatch& encode) {
  const Pooling pooling = options.embed.pooling ? *options.embed.pooling : model.sentence().pooling;
  if (std::ranges::find(pooling.modes, PoolingMode::kCls) != pooling.modes.end()) {
    refuse<InvalidArgument>(
        "a chunk's vector is made of its own tokens, and the pooling cls takes the text's first; "
        "choose another, such as mean (--pooling mean)");
  }
  if (options.chunk_tokens < 0)
    refuse<InvalidArgument>("chunk_tokens is {}; it must be 0 (sentences) or more",
                            options.chunk_tokens);
  if (options.offset_unit == OffsetUnit::kNone)
    throw InvalidArgument("chunks have spans: choose bytes or characters");
  if (!options.embed.output.empty())
    throw InvalidArgument("how many chunks there are is not known before: leave out `output`");
  const std::vector<std::vector<TextSpan>> given = given_chunks(input, options);
  const int64_t d_model = model.config().d_model, width = pooling.width(d_model);
  struct Part {  // of a text
    std::vector<float> values;
    std::vector<TextSpan> spans;
    TextSpan run;  // from the first token's begin to the last one's end
  };
  std::vector<Part> parts(input.size());
  const auto take = [&](const TextStates& batch) {
    for_each_text(threads, std::ssize(batch.texts), [&](int64_t i) {
      Part& part = parts[batch.texts[i]];
      const int64_t begin = batch.offsets[i], end = batch.offsets[i + 1];
      const std::vector<Chunk> chunks =
          given.empty() ? chunks_of(batch.spans, begin, end, options.chunk_tokens,
                                    input.first[batch.texts[i]])
                        : chunks_in(given[batch.texts[i]], batch.spans, begin, end);
      for (const auto& [first, behind, span] : chunks) {
        std::vector<float> vector(width);
        if (first < behind) {
          vector = pool(batch.states.subspan(first * d_model, (behind - first) * d_model), d_model,
                        pooling);
        }
        part.values.insert(part.values.end(), vector.begin(), vector.end());
        part.spans.push_back(span);
      }
      if (given.empty() && !chunks.empty())
        part.run = {batch.spans[chunks.front().first].begin,
                    batch.spans[chunks.back().end - 1].end};
    });
  };
  const EmbedHead head = {.offset_unit = OffsetUnit::kBytes, .take = take};
  ChunkVectors result;
  result.width = width;
  result.reports = embed(model, threads, input, options.embed, encode, &head)->reports;
  for (int64_t i = 0; i < input.size(); ++i) {
    Part part = std::exchange(parts[i], {});
    if (!given.empty()) {
      part.spans = options.spans[i];
      part.values.resize(part.spans.size() * width);  // of a text without tokens
    } else {
      if (result.report(i).dropped_tokens > 0 && !part.spans.empty()) {  // no more than was run
        part.spans.front().begin = std::max(part.spans.front().begin, part.run.begin);
        part.spans.back().end = std::min(part.spans.back().end, part.run.end);
      }
      if (options.offset_unit == OffsetUnit::kCharacters)
        count_characters(input.first[i], part.spans);
    }
    result.values.insert(result.values.end(), part.values.begin(), part.values.end());
    result.spans.insert(result.spans.end(), part.spans.begin(), part.spans.end());
    result.offsets.push_back(std::ssize(result.spans));
  }
  return result;
}

}  // namespace phasor::internal
