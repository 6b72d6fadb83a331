// Parts of tokenizer.json that are of one of several types: {"type": "NFC"}, or a Sequence of such.
#pragma once

#include <span>
#include <string_view>

#include "tokenizer/files/tokenizer_json.h"

namespace phasor::internal {

/// A type of component and how it is read.
struct Component {
  std::string_view type;
  void (*read)(const ConfigReader& part, TokenizerJson& result);
};

/// Reads `part`, which is of one of the types in `known`, or a Sequence with a list of such parts
/// under `list`.
void read_component(const ConfigReader& part, std::string_view list,
                    std::span<const Component> known, TokenizerJson& result);

/// The types of post_processor; see json_template.cc.
std::span<const Component> post_processors();

}  // namespace phasor::internal
