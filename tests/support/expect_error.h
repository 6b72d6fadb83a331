// Checks on what is thrown: the type, one line, and the words that a reader needs.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

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

}  // namespace phasor
