// vocab.json: the ids of a tokenizer's pieces.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "files/files.h"

namespace phasor::internal {

/// The pairs of {"piece": id, …} in the file's order. Throws ModelError for anything else.
std::vector<std::pair<std::string, int32_t>> read_vocab_json(const ModelPath& file);

}  // namespace phasor::internal
