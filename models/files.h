// Reading whole files and JSON, with a sentence for everything that can be wrong with a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace phasor::internal {

/// A kind of file that people have in place of the one they want: "a web page (HTML)", "a Git LFS
/// pointer, not the file itself; run 'git lfs pull'". Empty where `head`, the file's first bytes,
/// looks like none of them.
std::string_view imposter(std::string_view head);

/// As imposter(), of a file's first bytes; empty where it cannot be read.
std::string_view imposter_in(const std::filesystem::path& file);

/// Throws ModelError where `file` is missing, no plain file, unreadable, or above 1 GiB.
std::string read_file(const std::filesystem::path& file);

/// As read_file, and ModelError where the content is no JSON object.
nlohmann::json read_json_object(const std::filesystem::path& file);

/// Any JSON value from a file.
nlohmann::json read_json(const std::filesystem::path& file);

/// Parses an object whose keys are all different, `what` standing for it in ModelError's message.
nlohmann::json parse_json_object(std::string_view text, std::string_view what);

/// Whether a plain file of this name is there; false where that cannot be known.
bool is_file(const std::filesystem::path& file);

/// A JSON value in one line of at most 60 characters, for messages.
std::string value_text(const nlohmann::json& value);

}  // namespace phasor::internal
