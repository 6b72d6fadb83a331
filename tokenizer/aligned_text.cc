#include "tokenizer/aligned_text.h"

#include <limits>

#include "files/refuse.h"
#include "files/utf8.h"

namespace phasor::internal {

AlignedText::AlignedText(std::string_view bytes, OffsetUnit unit)
    : aligned_(unit != OffsetUnit::kNone) {
  ValidText valid = to_valid_utf8(bytes);
  text_ = std::move(valid.text);
  invalid_bytes_ = valid.invalid_bytes;
  if (!aligned_) return;
  if (bytes.size() > std::numeric_limits<uint32_t>::max()) {
    refuse<InvalidArgument>("a text of {} bytes; offsets are counted up to 4 GiB; split the text",
                            bytes.size());
  }
  sources_.reserve(text_.size());
  Source source;
  for (std::string_view rest = text_; sources_.size() < text_.size();) {
    const size_t begin = bytes.size();
    take_character(bytes);
    const size_t given = begin - bytes.size(), size = character_size(rest);  // 1 and 3, if invalid
    source.end = source.begin + (unit == OffsetUnit::kBytes ? static_cast<uint32_t>(given) : 1);
    sources_.resize(sources_.size() + size, source);
    source.begin = source.end;
    rest.remove_prefix(size);
  }
}

void AlignedText::append(char32_t character, Source source) {
  append_character(character, text_);
  if (aligned_) sources_.resize(text_.size(), source);
}

void AlignedText::close_gaps(uint32_t end) {
  for (size_t i = sources_.size(); i-- > 0; end = sources_[i].begin) sources_[i].end = end;
}

}  // namespace phasor::internal
