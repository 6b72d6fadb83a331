// Positions and their edits by name.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "files/refuse.h"
#include "files/spelling.h"
#include "phasor/names.h"
#include "phasor/positions.h"

namespace phasor {

using namespace internal;

namespace {

/// "shift=3" is {"shift", "3"}; without the mark the value is empty.
std::pair<std::string_view, std::string_view> divided(std::string_view text, char mark) {
  const size_t at = text.find(mark);
  return {text.substr(0, at), at == text.npos ? "" : text.substr(at + 1)};
}

}  // namespace

Positions Positions::named(std::string_view name, const PositionConfig& own) {
  if (name.empty() || name == "own") return Positions();
  if (name == "none") return none();
  if (name == "learned") return learned();
  if (name == "alibi") return alibi();
  const auto [kind, value] = divided(name, ':');
  const bool has_value = kind.size() < name.size();
  if (kind == "sinusoidal") {
    return sinusoidal(has_value ? parse<SinusoidalLayout>(value) : own.layout, own.base);
  }
  const EnumNames& layouts = names<SinusoidalLayout>();
  if (std::ranges::find(layouts.all, name) != layouts.all.end()) {
    return sinusoidal(parse<SinusoidalLayout>(name), own.base);
  }
  if (kind != "rotary") {
    std::vector<std::string_view> known = {"own",     "none",   "sinusoidal",
                                           "learned", "rotary", "alibi"};
    known.insert(known.end(), layouts.all.begin(), layouts.all.end());
    refuse<InvalidArgument>(
        "'{}' names no positions; there are own, none, sinusoidal[:LAYOUT], a LAYOUT by itself "
        "({}), learned, rotary[:BASE] and alibi{}",
        name, fmt::join(layouts.all, ", "), did_you_mean(kind, known));
  }
  if (!has_value) return rotary();
  const auto base = parse_number<double>(value);
  if (base && *base > 1 && std::isfinite(*base)) return rotary(*base);
  refuse<InvalidArgument>("the base of {} is not a number above 1; usual are 10000 and 160000",
                          name);
}

Positions Positions::edited(std::string_view edit) const {
  const auto wrong = [&](std::string_view expected) {
    return InvalidArgument(fmt::format("'{}' is no edit of positions; {}", edit, expected));
  };
  if (edit == "zero") return scaled(0);
  if (edit == "mean") return averaged();
  if (edit == "reverse") return reversed();
  if (edit == "repeat") return repeated();
  const auto [kind, value] = divided(edit, '=');
  if (kind == "scale") {
    const auto factor = parse_number<float>(value);
    if (!factor || !std::isfinite(*factor)) throw wrong("write a factor, like scale=0.5");
    return scaled(*factor);
  }
  if (kind == "shift") {
    const auto offset = parse_number<int64_t>(value);
    if (!offset) throw wrong("write a whole number, like shift=3 or shift=-1");
    return shifted(*offset);
  }
  if (kind == "swap") {
    const auto [first, second] = divided(value, ',');
    const auto i = parse_number<int64_t>(first), j = parse_number<int64_t>(second);
    if (!i || !j) throw wrong("write two tokens, counted from 0, like swap=2,5");
    return swapped(*i, *j);
  }
  if (kind == "shuffle") {
    const auto seed = parse_number<uint64_t>(value);
    if (!seed) throw wrong("write a seed, like shuffle=7");
    return shuffled(*seed);
  }
  if (edit == "mask=causal") return masked(AttentionMask::kCausal);
  if (edit == "mask=none") return masked(AttentionMask::kNone);
  if (edit == "mask=own") return masked(AttentionMask::kModel);
  if (kind == "mask")
    refuse<InvalidArgument>("there is no mask '{}'; there are causal, none and own", value);
  throw wrong(
      "there are zero, mean, scale=X, shift=N, swap=I,J, reverse, shuffle=SEED, repeat, "
      "mask=causal and mask=none");
}

}  // namespace phasor
