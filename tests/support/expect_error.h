// Checks on what is thrown: the type, one line, and the words that a reader needs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "phasor/errors.h"
#include "phasor/names.h"

namespace phasor {

/// Expects `run` to throw an Error whose message is one line and contains each of `words`.
template <typename Error>
void expect_error(const std::function<void()>& run, const std::vector<std::string>& words) {
  try {
    run();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_FALSE(message.empty());
    for (const std::string& word : words) {
      EXPECT_NE(message.find(word), std::string::npos)
          << "'" << word << "' is not in the message: " << message;
    }
    return;
  } catch (const std::exception& error) {
    FAIL() << "an exception of another type: " << error.what();
  }
  FAIL() << "nothing was thrown; expected a message with: "
         << (words.empty() ? std::string("anything") : words.front());
}

/// Expects an Error of this code, whose message contains `words`.
inline void expect_code(ErrorCode code, const std::string& words,
                        const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    return;
  }
  FAIL() << "nothing was thrown; expected " << to_string(code);
}

/// Whether one of `notes` contains `words`.
inline bool mentions(const std::vector<std::string>& notes, const std::string& words) {
  return std::ranges::any_of(
      notes, [&](const std::string& note) { return note.find(words) != note.npos; });
}

/// Expects one note, which contains each of `words`.
inline void expect_one_note(const std::vector<std::string>& notes,
                            const std::vector<std::string>& words) {
  EXPECT_EQ(notes.size(), 1u) << testing::PrintToString(notes);
  for (const std::string& word : words) {
    EXPECT_TRUE(mentions(notes, word)) << word << " is not in " << testing::PrintToString(notes);
  }
}

}  // namespace phasor
