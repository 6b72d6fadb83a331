// Lines in, vectors out, window by window, so that memory stays bounded whatever the input's size.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "infer/commands/embed/embed_file.h"
#include "infer/commands/embed/embed_format.h"
#include "infer/commands/embed/embed_lines.h"
#include "infer/commands/embed/embed_meter.h"
#include "infer/commands/embed/line_report.h"
#include "infer/render/terminal.h"

namespace infer {

struct StreamOptions {
  bool quiet = false;
  bool strict = false;        // a line that is cut or not all UTF-8 is an error
  bool refuses_long = false;  // a line with too many tokens is an error
};

/// One run of infer embed. Borrows all that it is made from.
class EmbedStream {
 public:
  /// `file`: null for standard output. Goes on after the lines that the file holds; throws
  /// InvalidArgument where those of `lines` are others.
  EmbedStream(phasor::Encoder& encoder, const phasor::EmbedOptions& how, LineReader& lines,
              const Interrupts& interrupts, VectorFormat format, PartialFile* file,
              StreamOptions options);

  /// To the end, where it commits the file; false where a signal came before.
  bool run();

  int64_t lines_done() const { return state_.lines; }
  /// What was done, for people.
  std::string summary() const;

 private:
  bool skip_done_lines();
  std::vector<Line> read_window();
  std::optional<phasor::Embeddings> embed(const std::vector<Line>& window);
  void report(const std::vector<Line>& window, const phasor::Embeddings& vectors, Meter& meter);
  void write(const std::vector<Line>& window, std::span<const float> vectors);

  phasor::Encoder& encoder_;
  const phasor::EmbedOptions& how_;
  LineReader& lines_;
  const Interrupts& interrupts_;
  VectorFormat format_;
  PartialFile* file_;
  StreamOptions options_;
  Output output_;
  Fingerprint input_;
  PartialState state_;
  int64_t reported_long_ = 0;
  int64_t reported_broken_ = 0;
  int64_t lines_before_ = 0;  // done by an earlier run
  double seconds_ = 0;
};

}  // namespace infer
