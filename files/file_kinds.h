// Kinds of files by their first bytes, for messages about files that phasor cannot read.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "files/files.h"
#include "phasor/errors.h"

namespace phasor::internal {

enum class FileFormat { kOther, kPickle, kSafetensors };

/// A kind of file.
struct FileKind {
  std::string_view name;    // "a Git LFS pointer, not the file itself"
  std::string_view advice;  // "run 'git lfs pull' where it came from"
  bool (*begins)(std::string_view head);
  FileFormat format = FileFormat::kOther;
  ErrorCode code = ErrorCode::kInvalidModel;  // thrown for a folder with such weights
  std::string_view extension = {};            // for kinds without unique first bytes
};

/// The kind by the first bytes (`head`), or by the extension of `name`; null if neither is known.
const FileKind* file_kind(std::string_view head, std::string_view name = {});

/// The first bytes of a file that must be within_folder(), as many as file_kind() needs; empty if
/// they cannot be read.
std::string file_head(const ModelPath& file);

/// Throws ModelError if `bytes`, of `file`, begin a known kind that is not `wanted`.
void refuse_other_kind(std::string_view bytes, const std::filesystem::path& file,
                       FileFormat wanted = FileFormat::kOther);

}  // namespace phasor::internal
