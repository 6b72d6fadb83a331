// The tokenizer of a model's folder.
#pragma once

#include <memory>

#include "files/model_folder.h"
#include "phasor/tokenizer.h"

namespace phasor::internal {

/// Like Tokenizer::load().
std::shared_ptr<const Tokenizer> load_tokenizer(ModelFolder& folder, const LoadOptions& options);

}  // namespace phasor::internal
