// The infer binary under test, and what every one of its results must fulfil.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/run_program.h"

namespace phasor {

inline ProgramResult run_infer(std::vector<std::string> arguments,
                               const ProgramOptions& options = {}) {
  arguments.insert(arguments.begin(), INFER_BINARY);
  return run_program(arguments, options);
}

/// Runs infer --json, which must succeed, and parses its lines.
inline std::vector<nlohmann::json> infer_json(std::vector<std::string> arguments,
                                              const ProgramOptions& options = {}) {
  arguments.insert(arguments.begin() + (arguments.at(0).starts_with("-") ? 0 : 1), "--json");
  const ProgramResult result = run_infer(std::move(arguments), options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::vector<nlohmann::json> objects;
  for (const std::string& line : lines_of(result.out)) {
    objects.push_back(nlohmann::json::parse(line));
  }
  return objects;
}

/// Expects this exit code, nothing on stdout, and one line on stderr that holds `words`.
inline void expect_infer_fails(const std::vector<std::string>& arguments, int exit_code,
                               const std::vector<std::string>& words,
                               const ProgramOptions& options = {}) {
  const ProgramResult result = run_infer(arguments, options);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_TRUE(result.err.starts_with("infer: ")) << result.err;
  for (const std::string& word : words) {
    EXPECT_NE(result.err.find(word), std::string::npos) << word << " is not in: " << result.err;
  }
}

}  // namespace phasor
