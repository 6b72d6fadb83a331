// "Positional Encoding", with a layer in PyTorch.

#include <cmath>

#include "infer/experiment/claim_list.h"
#include "phasor/errors.h"

namespace infer::claims {
namespace {

// The 10×4 table as torch prints it.
constexpr const char* kPrinted =
    "0.0000, 1.0000, 0.0000, 1.0000, 0.8415, 0.5403, 0.0100, 0.9999, "
    "0.9093, -0.4161, 0.0200, 0.9998, 0.1411, -0.9900, 0.0300, 0.9996, "
    "-0.7568, -0.6536, 0.0400, 0.9992, -0.9589, 0.2837, 0.0500, 0.9988, "
    "-0.2794, 0.9602, 0.0600, 0.9982, 0.6570, 0.7539, 0.0699, 0.9976, "
    "0.9894, -0.1455, 0.0799, 0.9968, 0.4121, -0.9111, 0.0899, 0.9960";

void add_the_printed_table(const Tables& tables, Claims& list) {
  const Matrix table = tables.paper(10, 4);
  std::vector<double> rounded;  // to float32
  for (const double value : table.values) rounded.push_back(static_cast<float>(value));
  const std::string printed = fmt::format("{:.4f}", fmt::join(rounded, ", "));
  list.push_back({.text = "The 10×4 table that is printed",
                  .computed = fmt::format("in float32, row 1 = {:.4f}, row 9 = {:.4f}",
                                          fmt::join(std::span(rounded).subspan(4, 4), ", "),
                                          fmt::join(std::span(rounded).subspan(36), ", ")),
                  .holds = printed == kPrinted});
  const double last = table.at(1, 3);
  list.push_back({.text = "The last entry of its row 1 is 0.9999",
                  .computed = fmt::format("{:.4f} in float32 ({:.8f}), {:.4f} in double ({:.12f})",
                                          rounded[7], rounded[7], last, last),
                  .holds = fmt::format("{:.4f}", rounded[7]) == "0.9999",
                  .numbers = fmt::format("{:.4f}", last) == "1.0000",
                  .reason = "in float32 only"});
}

void add_odd_width(const Tables& tables, Claims& list) {
  std::string refusal = "nothing is refused";
  bool refused = false;
  try {
    tables.make(SinusoidalLayout::kOpenNmt, 1, 5);
  } catch (const InvalidArgument& error) {
    refusal = error.what();
    refused = true;
  }
  const Matrix table = tables.paper(2, 5);
  list.push_back(
      {.text = "Only even widths can be encoded: an odd one is an error",
       .computed =
           fmt::format("\"{}\"; paper: PE(1) = {:.4f}", refusal, fmt::join(table.row(1), ", ")),
       .holds = refused,
       .numbers = near(table.at(1, 4), std::sin(std::pow(10000.0, -0.8)), 1e-15),
       .reason = "as a choice of the layout: opennmt refuses them, the formula does not"});
}

void add_wavelengths(const Tables& tables, Claims& list) {
  const double shortest = wavelength(tables.paper(2, 512), 0, 1);
  list.push_back({.text = "The wavelengths form a geometric progression from π to 2πT",
                  .computed = fmt::format("the shortest is {:.4f}", shortest),
                  .holds = near(shortest, kCircle / 2, 1e-6),
                  .should_hold = false,
                  .numbers = near(shortest, kCircle, 1e-9),
                  .reason = "from 2π"});
}

// x + pe[:, :, : x.size(2)] for x of 5 tokens and width 20, and a buffer of 10 rows; and for x of
// width 4.
void add_the_slice(const Tables& tables, Claims& list) {
  const Matrix buffer = tables.paper(10, 20), narrow = tables.paper(10, 4);
  const int64_t sliced = std::ssize(buffer.values) / 20;
  const double difference = largest_difference(buffer.row(1).first(4), narrow.row(1));
  const double expected = std::sin(std::pow(10000.0, -0.1)) - std::sin(0.01);
  list.push_back(
      {.text = "The layer's pe[:, :, : x.size(2)] makes it suitable for varying sequence lengths",
       .computed = fmt::format("for 5 tokens it keeps all {} rows; for width 4 it is {:.4f} off "
                               "the table of width 4",
                               sliced, difference),
       .holds = sliced == 5 || difference == 0,
       .should_hold = false,
       .numbers = sliced == 10 && near(difference, expected, 1e-12),
       .reason = "it slices features; the length is the second axis, pe[:, : x.size(1)]"});
}

}  // namespace

Claims positional_encoding_pytorch(const Tables& tables, const ClaimModels&) {
  Claims list;
  add_wavelengths(tables, list);
  add_odd_width(tables, list);
  add_the_printed_table(tables, list);
  add_the_slice(tables, list);
  return list;
}

}  // namespace infer::claims
