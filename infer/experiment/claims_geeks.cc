// GeeksforGeeks, "Positional Encoding in Transformers".

#include <algorithm>
#include <array>

#include "infer/experiment/claim_list.h"

namespace infer::claims {

Claims geeks_for_geeks(const Tables& tables, const ClaimModels&) {
  Claims list;

  const std::array first = {0.841471, 0.540302, 0.01, 0.99995};  // as printed
  const std::array sixth = {-0.279415, 0.96017, 0.059964, 0.998201};
  const Matrix words = tables.paper(6, 4, 10000, 1), code = tables.paper(6, 4);
  const double difference =
      std::max(largest_difference(words.row(0), first), largest_difference(words.row(5), sixth));
  list.push_back(
      {.text = "\"The cat sat on the mat\", d = 4: PE(1) = 0.841471, 0.540302, 0.01, 0.99995, … "
               "PE(6) = −0.279415, 0.96017, 0.059964, 0.998201",
       .computed = fmt::format("PE(1) = {:.6f}; PE(6) = {:.6f}", fmt::join(words.row(0), ", "),
                               fmt::join(words.row(5), ", ")),
       .holds = difference <= 5.1e-7,
       .numbers = largest_difference(code.row(0), std::array{0.0, 1.0, 0.0, 1.0}) == 0,
       .reason =
           fmt::format("counting from 1; its code counts from 0 and gives the first word {:.0f}",
                       fmt::join(code.row(0), ", "))});

  const Matrix table = tables.paper(50, 512);
  const int64_t rows = std::ssize(table.values) / 512;
  list.push_back({.text = "The code prints the shape (1, 50, 512)",
                  .computed = fmt::format("(1, {}, 512), {} numbers", rows, table.values.size()),
                  .holds = rows == 50});
  list.push_back({.text = "… \"for a sequence of length 10\"",
                  .computed = fmt::format("{} rows", rows),
                  .holds = rows == 10,
                  .should_hold = false,
                  .numbers = rows == 50,
                  .reason = "the code sets position = 50"});

  const Matrix shorter = tables.paper(10, 512);
  const double moved =
      largest_difference(shorter.values, std::span(table.values).first(shorter.values.size()));
  list.push_back(
      {.text = "It allows sequences of different lengths",
       .computed = fmt::format("the table of 10 rows and the first 10 of 50 differ by {}", moved),
       .holds = moved == 0,
       .reason = "a shorter table is the beginning of a longer one"});
  return list;
}

}  // namespace infer::claims
