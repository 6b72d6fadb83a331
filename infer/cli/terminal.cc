#include "infer/cli/terminal.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <filesystem>
#include <new>

#include "infer/cli/command_line.h"
#include "phasor/errors.h"

namespace infer {
namespace {

using phasor::internal::take_character;

/// The bytes of `line` that fit into `width` columns; colours take none.
size_t room(std::string_view line, int width) {
  std::string_view rest = line;
  for (int used = 0; !rest.empty();) {
    std::string_view after = rest;
    if (rest.starts_with("\033[")) {
      after.remove_prefix(std::min(rest.find('m'), rest.size() - 1) + 1);
    } else {
      used += std::max(wcwidth(static_cast<wchar_t>(take_character(after))), 0);
    }
    if (used > width) break;
    rest = after;
  }
  return line.size() - rest.size();
}

/// Where the second column of a list's line begins, if it leaves half of the width; or else two
/// columns right of where an indented line begins.
int continued_at(std::string_view line, int width) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const size_t gap = line.find("  ", begin);
  const size_t second = gap == line.npos ? line.npos : line.find_first_not_of(' ', gap);
  const size_t further = begin == 0 ? 0 : begin + 2, most = static_cast<size_t>(width) / 2;
  return static_cast<int>(second <= most ? second : std::min(further, most));
}

/// `line` broken between words if possible: the first part is `used` columns short, the others
/// begin with `indent` blanks.
std::string broken(std::string line, int used, int indent, int width) {
  std::string out;
  for (size_t end = room(line, width - used); end < line.size(); end = room(line, width)) {
    const size_t space = line.rfind(' ', end);
    const bool between = space != line.npos && line.find_first_not_of(' ') < space;
    const size_t cut = between ? space : end;
    out += trimmed(line.substr(0, cut));
    const size_t rest = line.find_first_not_of(' ', cut);
    line = std::string(indent, ' ') + (rest == line.npos ? "" : line.substr(rest));
  }
  return out + line;
}

/// At least 40; INT_MAX where it is no terminal.
int columns_of(int descriptor) {
  winsize size{};
  const bool known = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? std::max<int>(size.ws_col, 40) : INT_MAX;
}

}  // namespace

Output::Output() {
  terminal_ = isatty(STDOUT_FILENO) != 0;
  if (!terminal_) return;
  const char* no_color = std::getenv("NO_COLOR");
  colours_ = no_color == nullptr || *no_color == '\0';
  if (const int columns = columns_of(STDOUT_FILENO); columns < INT_MAX) width_ = columns;
}

void Output::write(std::string_view text) {
  while (!text.empty() && !closed_) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EPIPE) {
      closed_ = true;
    } else if (errno != EINTR) {
      throw phasor::InvalidArgument(
          fmt::format("cannot write to standard output: {}", std::strerror(errno)));
    }
  }
}

void Output::show(std::string_view text) {
  write(terminal_ ? fitted(text, width_) : std::string(text));
}

std::string Output::heading(std::string_view text) const {
  return colours_ ? fmt::format("\033[1m{}\033[0m", text) : std::string(text);
}

std::string Output::tinted(std::string_view text) const {
  return colours_ ? fmt::format("\033[32m{}\033[0m", text) : std::string(text);
}

std::string Output::labelled(const std::string& label, std::string_view text) const {
  return label + cut_right(printable(text), std::max(width_ - display_width(label), 20)) + "\n";
}

void write_stderr(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

int report_error(std::string_view message, int code) {
  write_stderr(fitted(fmt::format("infer: {}\n", printable(message)), columns_of(STDERR_FILENO)));
  return code;
}

int report_current_exception() {
  try {
    throw;
  } catch (const UsageError& error) {
    return report_error(error.what(), kUsage);
  } catch (const phasor::InvalidArgument& error) {
    return report_error(error.what(), kBadInput);
  } catch (const phasor::ModelError& error) {
    return report_error(error.what(), kBadModel);
  } catch (const std::filesystem::filesystem_error& error) {
    return report_error(fmt::format("{}: {}", error.path1().string(), error.code().message()),
                        kBadInput);
  } catch (const std::bad_alloc&) {
    return report_error("out of memory; give fewer or shorter texts, or a smaller model", kBackend);
  } catch (const std::exception& error) {
    return report_error(error.what(), kBackend);
  }
}

void report_note(std::string_view message) {
  write_stderr(fitted(fmt::format("note: {}\n", printable(message)), columns_of(STDERR_FILENO)));
}

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) width += std::max(wcwidth(static_cast<wchar_t>(take_character(text))), 0);
  return width;
}

std::string pad_left(std::string_view text, int width) {
  return std::string(std::max(width - display_width(text), 0), ' ') + std::string(text);
}

std::string pad_right(std::string_view text, int width) {
  return std::string(text) + std::string(std::max(width - display_width(text), 0), ' ');
}

std::string wrapped(std::string_view text, int indent, int width) {
  text.remove_suffix(text.size() - text.find_last_not_of(' ') - 1);
  return broken(std::string(text), indent, indent, width);
}

std::string fitted(std::string_view text, int width) {
  std::string out;
  while (!text.empty()) {
    const std::string line(text.substr(0, text.find('\n')));
    const bool ended = line.size() < text.size();
    text.remove_prefix(line.size() + (ended ? 1 : 0));
    out += broken(line, 0, continued_at(line, width), width) + (ended ? "\n" : "");
  }
  return out;
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string cut_right(std::string_view text, int width) {
  if (display_width(text) <= width) return std::string(text);
  return std::string(text.substr(0, room(text, width - 1))) + "…";
}

std::string cut_left(std::string_view text, int width) {
  if (display_width(text) <= width) return std::string(text);
  while (!text.empty() && display_width(text) >= width) take_character(text);
  return "…" + std::string(text);
}

std::string bar(double share, int width) {
  constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(share > 0)) return "";
  const int eighths = static_cast<int>(std::lround(std::min(share, 1.0) * width * 8));
  std::string out;
  for (int i = 0; i < eighths / 8; ++i) out += "█";
  return out.append(kEighths[eighths % 8]);
}

std::string token_table(const std::vector<TokenRow>& rows, int width) {
  int label_width = 0;
  size_t columns = 0;
  for (const TokenRow& row : rows) {
    label_width = std::max(label_width, display_width(row.label));
    columns = std::max(columns, row.cells.size());
  }
  std::vector<int> widths(columns, 0);
  for (const TokenRow& row : rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row.cells[i]));
    }
  }

  std::string out;
  for (size_t begin = 0, end = 0; begin < columns; begin = end) {
    int used = 2 + label_width;
    while (end < columns && (end == begin || used + 2 + widths[end] <= width)) {
      used += 2 + widths[end++];
    }
    if (begin > 0) out += "\n";
    for (const TokenRow& row : rows) {
      std::string line = "  " + pad_right(row.label, label_width);
      for (size_t i = begin; i < std::min(end, row.cells.size()); ++i) {
        line += "  " + pad_right(row.cells[i], widths[i]);
      }
      out += trimmed(line);
    }
  }
  return out;
}

}  // namespace infer
