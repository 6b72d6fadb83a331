#include "tokenizer/libraries.h"

#include <fmt/format.h>
#include <utf8proc.h>

namespace phasor::internal {

std::string tokenizer_libraries() {
  return fmt::format("sentencepiece {}, utf8proc {}", PHASOR_SENTENCEPIECE_VERSION,
                     utf8proc_version());
}

}  // namespace phasor::internal
