// Lines in, vectors out, window by window, so that memory stays bounded whatever the input's size.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "infer/cli/progress.h"
#include "infer/commands/embed/embed_file.h"
#include "infer/commands/embed/embed_lines.h"

namespace infer {

struct StreamOptions {
  bool quiet = false;
  bool strict = false;        // a line that is cut or not all UTF-8 is an error
  bool refuses_long = false;  // a line with too many tokens is an error
  bool waits = true;          // for a whole window where lines come slowly
};

/// One run over lines. Borrows all that it is made from.
class EmbedStream {
 public:
  /// Takes a window's lines and vectors; `state` is what is done with them. False: no more.
  using Sink = std::function<bool(std::span<const Line> lines, const phasor::Embeddings& vectors,
                                  const PartialState& state)>;

  EmbedStream(phasor::Encoder& encoder, const phasor::EmbedOptions& how, LineReader& lines,
              StreamOptions options);

  /// Reads the lines that `file` holds. Throws InvalidArgument where it was made from others; false
  /// where a signal came.
  bool skip_done_lines(const PartialFile& file);
  /// To the end; false where a signal came before.
  bool run(const Sink& sink);

  int64_t lines_done() const { return state_.lines; }
  /// What was done, for people.
  std::string summary() const;

 private:
  std::vector<Line> read_window();
  std::optional<phasor::Embeddings> embed(std::span<const Line> window);
  void report(std::span<const Line> window, const phasor::Embeddings& vectors, Progress& progress);
  std::string progress_text(double seconds, int64_t bytes_before) const;

  phasor::Encoder& encoder_;
  const phasor::EmbedOptions& how_;
  LineReader& lines_;
  StreamOptions options_;
  Fingerprint input_;
  PartialState state_;
  int64_t lines_cut_ = 0, lines_invalid_ = 0;
  int64_t reported_long_ = 0, reported_broken_ = 0;
  int64_t lines_before_ = 0;  // done by an earlier run
  double seconds_ = 0;
};

}  // namespace infer
