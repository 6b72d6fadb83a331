// Zip archives whose files are stored as they are.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace phasor::internal {

/// The bytes of each file in `archive`, by its name; both borrowed from the archive. Throws
/// ModelError, which begins with `where`, for an archive that is damaged, and for files that are
/// compressed, encrypted or of one name. Checksums are not compared. Format: PKWARE's APPNOTE.TXT.
std::map<std::string_view, std::span<const std::byte>> read_zip(std::span<const std::byte> archive,
                                                                const std::string& where);

}  // namespace phasor::internal
