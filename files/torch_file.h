// Files that PyTorch's torch.save() writes, as far as they hold tensors, and the zip archives that
// they are.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "phasor/safetensors.h"

namespace phasor::internal {

/// Of a tensor, in a file of either kind.
constexpr size_t kMaxDimensions = 8;

/// The tensors of a file, which a pickle describes. Nothing of the pickle is run: it is read by a
/// machine that knows dictionaries, tuples, numbers, texts and tensors, and refuses all else by
/// name.
struct TorchTensors {
  std::map<std::string, SafetensorsFile::Entry> entries;  // borrow from the file, or from `copies`
  std::vector<std::vector<std::byte>> copies;             // of tensors that do not lie in one piece
};

/// `bytes` are all of `file`: a zip archive, or what torch.save() wrote before version 1.6. Throws
/// ModelError.
TorchTensors read_torch_file(std::span<const std::byte> bytes, const std::filesystem::path& file);

/// The bytes of each file in `archive`, by its name; both borrowed from the archive. Throws
/// ModelError, which begins with `where`, for an archive that is damaged, and for files that are
/// compressed, encrypted or of one name. Checksums are not compared. Format: PKWARE's APPNOTE.TXT.
std::map<std::string_view, std::span<const std::byte>> read_zip(std::span<const std::byte> archive,
                                                                const std::string& where);

}  // namespace phasor::internal
