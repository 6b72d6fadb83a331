// Images of 256 colours as PNG files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "infer/render/colour_map.h"

namespace infer {

/// `pixels` are indices into `palette` (at most 256 colours), [rows, columns] from the top left;
/// the result is the file's bytes. Throws std::runtime_error where libpng fails.
std::string png(std::span<const uint8_t> pixels, int64_t rows, int64_t columns,
                std::span<const Colour> palette);

}  // namespace infer
