// A text that remembers where each of its bytes comes from. Normalizers take and give such texts,
// so that the tokens know their places in the text that was given.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "phasor/tokenizer.h"

namespace phasor::internal {

/// Where a byte comes from: a character of the text that was given, in the unit that was asked for.
struct Source {
  uint32_t begin = 0, end = 0;
};

/// A text or a part of one, which outlives this.
struct AlignedView {
  std::string_view text;
  const Source* sources = nullptr;  // of each byte; null: not asked for

  AlignedView() = default;
  template <std::convertible_to<std::string_view> Text>
  // NOLINTNEXTLINE(google-explicit-constructor): as std::string_view
  AlignedView(const Text& of, const Source* sources_of = nullptr) : text(of), sources(sources_of) {}

  /// `inside` is a part of `text`.
  AlignedView part(std::string_view inside) const {
    return {inside, sources != nullptr ? sources + (inside.data() - text.data()) : nullptr};
  }
  AlignedView substr(size_t begin, size_t size = std::string_view::npos) const {
    return part(text.substr(begin, size));
  }
  /// Of the character before `inside`, or of the first.
  Source source_before(std::string_view inside) const {
    const auto at = static_cast<size_t>(inside.data() - text.data());
    return sources != nullptr ? sources[at > 0 ? at - 1 : 0] : Source{};
  }
  /// Of the character that `inside` begins with; `inside` is not empty.
  Source source_of(std::string_view inside) const {
    return sources != nullptr ? sources[inside.data() - text.data()] : Source{};
  }
  /// From the first character's source to the last one's.
  TextSpan span() const {
    if (sources == nullptr || text.empty()) return {};
    return {sources[0].begin, sources[text.size() - 1].end};
  }
  /// That of `inside`, a part of `text`; where it is empty, the end of the whole one.
  TextSpan span_of(std::string_view inside) const {
    return inside.empty() ? TextSpan{span().end, span().end} : part(inside).span();
  }
};

/// A text that is made of another one, with the sources of its bytes where that one has them.
class AlignedText {
 public:
  /// An empty one.
  static AlignedText of(const AlignedView& other) {
    AlignedText text;
    text.aligned_ = other.sources != nullptr;
    return text;
  }
  explicit AlignedText(const AlignedView& copied) : aligned_(copied.sources != nullptr) {
    append(copied);
  }
  /// `bytes` with U+FFFD in place of each byte that is not UTF-8.
  AlignedText(std::string_view bytes, OffsetUnit unit);

  // NOLINTNEXTLINE(google-explicit-constructor): a view as of std::string
  operator AlignedView() const { return {text_, aligned_ ? sources_.data() : nullptr}; }
  const std::string& text() const& { return text_; }
  std::string text() && { return std::move(text_); }
  size_t size() const { return text_.size(); }
  int64_t invalid_bytes() const { return invalid_bytes_; }

  void reserve(size_t size) { text_.reserve(size); }
  void append(std::string_view bytes, Source source) {
    text_ += bytes;
    if (aligned_) sources_.resize(text_.size(), source);
  }
  void append(char32_t character, Source source);
  void append(const AlignedView& other) {
    text_ += other.text;
    if (aligned_) sources_.insert(sources_.end(), other.sources, other.sources + other.text.size());
  }
  void resize(size_t size) {
    text_.resize(size);
    if (aligned_) sources_.resize(size);
  }
  void clear() { resize(0); }
  /// Each byte's source ends where the next one's begins, the last one's at `end`: SentencePiece's
  /// alignment, in which no character is left out.
  void close_gaps(uint32_t end);

 private:
  AlignedText() = default;

  std::string text_;
  std::vector<Source> sources_;  // of each byte
  bool aligned_ = false;
  int64_t invalid_bytes_ = 0;
};

}  // namespace phasor::internal
