// Files of pieces: vocab.json, and those with one in each line.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "files/files.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {

/// The pairs of {"piece": id, …} in the file's order. Throws ModelError for anything else.
PieceIds read_vocab_json(const ModelPath& file);

/// Visits the lines of a file with their numbers, from 1. Throws ModelError for more than
/// kMaxPieces.
void for_each_line(const ModelPath& file,
                   const std::function<void(std::string_view line, int64_t number)>& visit);

}  // namespace phasor::internal
