// infer embed --nearest and --similarity: what is compared by vectors.
#pragma once

#include "infer/commands/embed/embedder.h"

namespace infer {

/// The lines nearest to each of the given texts, as a table or a JSON object for each text. Returns
/// the exit code.
int nearest(EmbedArguments& given);

/// Each text's similarity with each, as a table or as one JSON object.
int similarities(EmbedArguments& given);

}  // namespace infer
