// Where the reference data beside the repository lies, and how a test skips without it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

namespace phasor {

/// $PHASOR_SHARED, else `shared` beside the repository; empty where that is no folder.
inline std::optional<std::filesystem::path> shared_dir() {
  const char* const asked_for = std::getenv("PHASOR_SHARED");
  const std::filesystem::path folder =
      asked_for != nullptr ? std::filesystem::path(asked_for)
                           : std::filesystem::path(PHASOR_SOURCE_DIR).parent_path() / "shared";
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) return std::nullopt;
  return folder;
}

}  // namespace phasor

/// Declares `folder` as ../shared/`below`, or skips the test with a sentence.
#define PHASOR_SHARED_OR_SKIP(folder, below)                                       \
  const auto folder##_root = phasor::shared_dir();                                 \
  if (!folder##_root || !std::filesystem::exists(*folder##_root / (below))) {      \
    GTEST_SKIP() << "The reference data '" << (below)                              \
                 << "' is not here; set PHASOR_SHARED to the folder that has it."; \
  }                                                                                \
  const std::filesystem::path folder = *folder##_root / (below)
