// Texts run whole, as for embed(); the states of each chunk's tokens are pooled.
#include "engine/chunks.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include "files/refuse.h"

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
                                      [&](const TextSpan& each) { return each.end >= span.end; });
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
  for (TextSpan& span : chunks | std::views::transform(&Chunk::span))
    span = trimmed_span(text, span.begin, span.end);
  return chunks;
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
        "choose mean");
  }
  if (options.chunk_tokens < 0)
    refuse<InvalidArgument>("chunk_tokens is {}; it must be 0 (sentences) or more",
                            options.chunk_tokens);
  if (options.offset_unit == OffsetUnit::kNone)
    throw InvalidArgument("chunks have spans: choose bytes or characters");
  if (!options.embed.output.empty())
    throw InvalidArgument("how many chunks there are is not known before: leave out `output`");
  const int64_t d_model = model.config().d_model;
  std::vector<std::vector<float>> values(input.size());
  std::vector<std::vector<TextSpan>> spans(input.size());
  const auto take = [&](const TextStates& batch) {
    for_each_text(threads, std::ssize(batch.texts), [&](int64_t i) {
      const size_t text = batch.texts[i];
      for (const auto& [first, end, span] :
           chunks_of(batch.spans, batch.offsets[i], batch.offsets[i + 1], options.chunk_tokens,
                     input.first[text])) {
        const std::vector<float> vector =
            pool(batch.states.subspan(first * d_model, (end - first) * d_model), d_model, pooling);
        values[text].insert(values[text].end(), vector.begin(), vector.end());
        spans[text].push_back(span);
      }
    });
  };
  const EmbedHead head = {.offset_unit = OffsetUnit::kBytes, .take = take};
  ChunkVectors result = {
      .width = pooling.width(d_model),
      .values = {},
      .spans = {},
      .reports = embed(model, threads, input, options.embed, encode, &head)->reports};
  for (int64_t i = 0; i < input.size(); ++i) {
    result.values.insert(result.values.end(), values[i].begin(), values[i].end());
    const auto counted = [&](int64_t bytes) {
      const auto begins_character = [](char c) { return (c & 0xc0) != 0x80; };
      return options.offset_unit == OffsetUnit::kBytes
                 ? bytes
                 : std::ranges::count_if(input.first[i].substr(0, bytes), begins_character);
    };
    for (const auto& [begin, end] : spans[i])
      result.spans.push_back({counted(begin), counted(end)});
    result.offsets.push_back(std::ssize(result.spans));
  }
  return result;
}

}  // namespace phasor::internal
