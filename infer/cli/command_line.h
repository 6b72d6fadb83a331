// The command line of a subcommand: which options there are, where their values go, and the exit
// codes.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "files/spelling.h"
#include "infer/matrix.h"
#include "phasor/errors.h"
#include "phasor/names.h"

namespace CLI {
class App;
}

namespace infer {

/// Exit codes. 0: good.
inline constexpr int kUsage = 2;
inline constexpr int kBadInput = 3;
inline constexpr int kBadModel = 4;
inline constexpr int kBackend = 5;

/// The command line itself is wrong.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What `read` makes of an option's value; UsageError where it throws InvalidArgument.
template <typename Read>
auto of_option(std::string_view option, const Read& read) {
  try {
    return read();
  } catch (const phasor::InvalidArgument& error) {
    throw UsageError(fmt::format("{}: {}", option, error.what()));
  }
}

[[noreturn]] void refuse_number(std::string_view names, const std::string& text,
                                std::optional<Range> range, bool whole, bool from_zero);
using phasor::internal::parse_number;
/// A number of the range, the value of an enum with names, or the text. Throws UsageError, which
/// names the option, for what is none.
template <typename T>
T parse_value(std::string_view names, const std::string& text, std::optional<Range> range = {}) {
  if constexpr (std::is_enum_v<T>) {
    return of_option(names, [&] { return phasor::parse<T>(text); });
  } else if constexpr (std::is_arithmetic_v<T>) {
    const auto number = parse_number<T>(text);
    const auto value = static_cast<double>(number.value_or(0));
    if (number && !std::isnan(value) && (!range || (value >= range->low && value <= range->high)))
      return *number;
    refuse_number(names, text, range, std::is_integral_v<T>, std::is_unsigned_v<T>);
  } else {
    return text;
  }
}

/// What one occurrence of a list takes: a word, or the values in a word between commas.
enum class Values { kWord, kCommas };

/// A program's or a command's options. `names` are an option's, like "-m,--model", or a positional
/// argument's, like "MODEL"; `value` is what help calls the value. Help names an option without
/// `help` at its end alone; docs/command-line.md then has its sentence. Targets keep what they hold
/// where nothing is given, and must outlive parse().
class CommandLine {
 public:
  using Given = std::function<void()>;
  using Take = std::function<void(const std::string&)>;
  using TakeAll = std::function<void(const std::vector<std::string>&)>;

  /// What else to say of an option that a command lacks, after "; "; or nothing.
  using Elsewhere = std::string (*)(const std::string& option);

  /// A program and the words behind its name.
  CommandLine(const std::string& name, const std::string& description,
              std::vector<std::string> words, Elsewhere elsewhere = nullptr);
  /// Whose parse() says whether this option is there: 0, or kUsage.
  static CommandLine seeking(const std::string& option);
  /// A command of the program, which is meant where its name is the first word.
  CommandLine command(const std::string& name, const std::string& description);
  /// What help ends with.
  void footer(const std::string& text);

  void flag(const std::string& names, const std::string& help, Given given);
  void flag(const std::string& names, const std::string& help, bool& target) {
    flag(names, help, [&target] { target = true; });
  }

  void option(const std::string& names, const char* value, const std::string& help, Take take);
  /// T is what parse_value() makes, or a std::optional of it.
  template <typename T>
  void option(const std::string& names, const char* value, const std::string& help, T& target,
              std::optional<Range> range = {}) {
    using Value = typename decltype(std::optional(target))::value_type;
    option(names, value, help, [&target, names, range](const std::string& text) {
      target = parse_value<Value>(names, text, range);
    });
  }

  /// Repeatable; what is given takes the place of what the target holds.
  void list(const std::string& names, const char* value, const std::string& help, TakeAll take,
            Values each = Values::kWord);
  template <typename T>
  void list(const std::string& names, const char* value, const std::string& help,
            std::vector<T>& target, Values each = Values::kWord) {
    const TakeAll take = [&target, names](const std::vector<std::string>& values) {
      target.clear();
      for (const std::string& text : values) target.push_back(parse_value<T>(names, text));
    };
    list(names, value, help, take, each);
  }

  /// Any number of positional arguments, letter for letter.
  void words(const char* name, const char* help, std::vector<std::string>& target);

  /// Prints help or version where that was asked for: then the result is the exit code. Throws
  /// UsageError.
  std::optional<int> parse();
  bool ends_options() const;  // with "--"

 private:
  std::shared_ptr<CLI::App> program_;
  CLI::App* app_;  // of the program, or of its command
  std::vector<std::string> words_;
  Elsewhere elsewhere_;
  bool seeks_ = false;  // words_[0]
};

/// "phasor 0.2.0, oneDNN 2.6.3".
std::string versions();

}  // namespace infer
