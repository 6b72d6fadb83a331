// Lines in, vectors out, window by window, so that memory stays bounded whatever the input's size.
#include "infer/commands/embed/embed_stream.h"

#include <fmt/format.h>

#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

#include "phasor/errors.h"

namespace infer {
namespace {

// Lines that are read at once, which is what is lost when a run is killed.
constexpr size_t kWindowLines = 512;
constexpr size_t kWindowBytes = 1 << 17;

// One by one; further ones are only counted. A corpus may have any number of long lines.
constexpr int64_t kReportedLongLines = 20;
constexpr int64_t kReportedBrokenLines = 100;

}  // namespace

EmbedStream::EmbedStream(phasor::Encoder& encoder, const phasor::EmbedOptions& how,
                         LineReader& lines, const Interrupts& interrupts, VectorFormat format,
                         PartialFile* file, StreamOptions options)
    : encoder_(encoder),
      how_(how),
      lines_(lines),
      interrupts_(interrupts),
      format_(std::move(format)),
      file_(file),
      options_(options) {
  if (file_ == nullptr || !skip_done_lines()) return;
  lines_before_ = state_.lines;
}

// Reads up to where the partial file ends, which must be what it was made from. False where a
// signal came.
bool EmbedStream::skip_done_lines() {
  if (!file_->begin(format_, [&] { return interrupts_.pending(); })) return false;
  const PartialState& done = file_->state();
  int64_t lines = 0;
  for (; lines < done.lines; ++lines) {
    const std::optional<Line> line = lines_.next();
    if (interrupts_.pending()) return false;
    if (!line) break;
    input_.add(line->text);
  }
  if (done.lines > 0 && (lines < done.lines || input_.text() != done.input)) {
    throw phasor::InvalidArgument(
        fmt::format("--resume: the first {} lines of {} are not those that {} was made from; leave "
                    "--resume out to begin again",
                    done.lines, lines_.name(), file_->partial().string()));
  }
  state_ = done;
  return true;
}

bool EmbedStream::run() {
  Meter meter(options_.quiet, lines_.size(), lines_.bytes_read());
  while (!interrupts_.pending() && !output_.closed()) {
    const std::vector<Line> window = read_window();
    if (window.empty()) break;
    const std::optional<phasor::Embeddings> vectors = embed(window);
    if (!vectors) break;
    report(window, *vectors, meter);
    write(window, vectors->values());
    meter.show(state_.lines - lines_before_, lines_.bytes_read());
  }
  seconds_ = meter.seconds();
  if (interrupts_.pending()) return false;
  if (file_ != nullptr) file_->commit(format_.header(state_.lines));
  return true;
}

// On standard output also fewer lines than a window takes, where more would have to be waited for.
std::vector<Line> EmbedStream::read_window() {
  std::vector<Line> window;
  for (size_t bytes = 0; window.size() < kWindowLines && bytes < kWindowBytes;) {
    if (file_ == nullptr && !window.empty() && !lines_.ready()) break;
    std::optional<Line> line = lines_.next();
    if (!line) break;
    bytes += line->text.size();
    window.push_back(std::move(*line));
  }
  return window;
}

// Nothing where a signal came.
std::optional<phasor::Embeddings> EmbedStream::embed(const std::vector<Line>& window) {
  std::vector<std::string_view> texts;
  for (const Line& line : window) texts.push_back(line.text);
  std::stop_source stop;
  phasor::EmbedOptions how = how_;
  how.stop = stop.get_token();
  how.progress = [&](int64_t, int64_t) {
    if (interrupts_.pending()) stop.request_stop();
  };
  try {
    return encoder_.embed(texts, how);
  } catch (const phasor::Error& error) {
    if (error.code() != phasor::ErrorCode::kCancelled) throw;
    return std::nullopt;
  }
}

void EmbedStream::report(const std::vector<Line>& window, const phasor::Embeddings& vectors,
                         Meter& meter) {
  for (int64_t i = 0; i < vectors.size(); ++i) {
    const LineReport line{.tokens = vectors.report(i), .bytes_left_out = window[i].left_out};
    if (!line.odd()) continue;
    const int64_t number = state_.lines + i + 1;
    const int64_t run = line.tokens.num_tokens, dropped = line.tokens.dropped_tokens;
    const bool invalid = line.tokens.invalid_bytes > 0;
    if (options_.refuses_long && dropped > 0) {
      meter.clear();
      throw phasor::InvalidArgument(
          fmt::format("line {}: {} tokens are too many: at most {} are run; shorten it or choose "
                      "another --overflow (truncate, clamp, interpolate, window)",
                      number, run + dropped, run));
    }
    const std::string text = fmt::format("line {}: {}", number, line.text());
    if (options_.strict) {
      meter.clear();
      throw phasor::InvalidArgument(text + "; without --strict this is no error");
    }
    state_.lines_cut += line.cut() ? 1 : 0;
    state_.lines_invalid += invalid ? 1 : 0;
    const bool broken = invalid || line.has_no_tokens();
    int64_t& reported = broken ? reported_broken_ : reported_long_;
    const int64_t most = broken ? kReportedBrokenLines : kReportedLongLines;
    if (options_.quiet || reported > most) continue;
    meter.clear();
    report_note(reported++ < most ? text
                : broken          ? "further broken lines are only counted"
                                  : "further lines that are too long are only counted");
  }
}

void EmbedStream::write(const std::vector<Line>& window, std::span<const float> vectors) {
  const std::string bytes = format_.rows(vectors, state_.lines + 1);
  for (const Line& line : window) input_.add(line.text);
  state_.lines += std::ssize(window);
  state_.input = input_.text();
  if (file_ != nullptr) {
    file_->append(bytes, state_);
  } else {
    output_.write(bytes);
  }
}

std::string EmbedStream::summary() const {
  const int64_t lines = state_.lines - lines_before_;
  std::string text = fmt::format("{} {}, {} numbers each, in {:.1f} s ({:.0f} lines/s)", lines,
                                 lines == 1 ? "line" : "lines", format_.width, seconds_,
                                 seconds_ > 0 ? static_cast<double>(lines) / seconds_ : 0.0);
  if (state_.lines_cut > 0) text += fmt::format("; too long and cut: {}", state_.lines_cut);
  if (state_.lines_invalid > 0) text += fmt::format("; not all UTF-8: {}", state_.lines_invalid);
  return text;
}

}  // namespace infer
