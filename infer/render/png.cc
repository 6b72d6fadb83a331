// PNG through libpng.
#include "infer/render/png.h"

#include <png.h>

#include <stdexcept>

namespace infer {

std::string png(std::span<const uint8_t> pixels, int64_t rows, int64_t columns,
                std::span<const Colour> palette) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(columns);
  image.height = static_cast<png_uint_32>(rows);
  image.format = PNG_FORMAT_RGB_COLORMAP;
  image.colormap_entries = static_cast<png_uint_32>(palette.size());
  png_alloc_size_t size = 0;
  std::string bytes;
  const auto write = [&](void* memory) {
    return png_image_write_to_memory(&image, memory, &size, 0, pixels.data(), 0, palette.data());
  };
  if (write(nullptr) != 0) {
    bytes.resize(size);
    if (write(bytes.data()) != 0) return bytes;
  }
  throw std::runtime_error(std::string("cannot make a PNG image: ") + image.message);
}

}  // namespace infer
