// vocab.json: the ids of a tokenizer's pieces.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace phasor::internal {

/// The pairs of {"piece": id, …} in the file's order. Throws ModelError for anything else.
std::vector<std::pair<std::string, int32_t>> read_vocab_json(const std::filesystem::path& file);

}  // namespace phasor::internal
