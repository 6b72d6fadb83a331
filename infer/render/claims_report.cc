// The tutorials' claims, computed on the spot and shown source by source.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "files/json_writer.h"
#include "infer/cli/terminal.h"
#include "infer/cli/usage.h"
#include "infer/positions/claims.h"
#include "infer/render/position_report.h"
#include "phasor/errors.h"

namespace infer {
namespace {

/// A bundled model; null, and said so, where there is none.
std::shared_ptr<const phasor::Model> bundled(const char* name, bool quiet) {
  try {
    return phasor::Model::load(name);
  } catch (const phasor::ModelError& error) {
    if (!quiet) report_note(fmt::format("claims about it are left out: {}", error.what()));
    return nullptr;
  }
}

std::string verdict(const Claim& claim, const Output& output) {
  if (!claim.holds) return "≈";
  return *claim.holds ? output.tinted("✔", Tint::kGreen) : output.tinted("✘", Tint::kRed);
}

/// "  ✔ what it says", and below it what was computed and why.
std::string to_text(const Claim& claim, const Output& output) {
  constexpr int kIndent = 4;
  const int width = std::min(output.width(), 100);
  const auto part = [&](const char* label, const std::string& text) {
    const std::string labelled = label + printable(text);
    return std::string(kIndent, ' ') + wrapped(labelled, kIndent + 2, width) + "\n";
  };
  std::string text = fmt::format("  {} {}\n", verdict(claim, output),
                                 wrapped(printable(claim.text), kIndent, width));
  text += part("= ", claim.computed);
  if (!claim.reason.empty()) text += part("→ ", claim.reason);
  if (!claim.as_expected) {
    text += fmt::format("    ! {}\n", output.tinted("this is not what theory gives", Tint::kRed));
  }
  return text;
}

std::string to_text(const std::vector<Claim>& claims, const Output& output) {
  std::string text, source;
  for (const Claim& claim : claims) {
    if (claim.source != source) {
      text += fmt::format("{}{}\n", source.empty() ? "" : "\n", output.heading(claim.source));
    }
    source = claim.source;
    text += to_text(claim, output);
  }
  const auto holds = std::ranges::count(claims, std::optional(true), &Claim::holds);
  const auto fails = std::ranges::count(claims, std::optional(false), &Claim::holds);
  const auto unexpected = std::ranges::count(claims, false, &Claim::as_expected);
  text += fmt::format("\n{} claims: {} hold (✔), {} do not (✘), without a verdict: {} (≈)\n",
                      claims.size(), holds, fails, std::ssize(claims) - holds - fails);
  if (unexpected > 0) text += fmt::format("{} are not what theory gives (!)\n", unexpected);
  return text;
}

std::string claims_json(const std::vector<Claim>& claims, bool as_expected) {
  phasor::internal::JsonWriter json;
  json.object([&] {
    json.member("as_expected", as_expected);
    json.key("claims").array([&] {
      for (const Claim& claim : claims) {
        json.object([&] {
          json.member("source", claim.source);
          json.member("text", claim.text);
          json.member("computed", claim.computed);
          json.member("holds", claim.holds);
          json.member("reason", claim.reason);
          json.member("as_expected", claim.as_expected);
        });
      }
    });
  });
  return json.take();
}

}  // namespace

int show_claims(bool json, bool quiet) {
  const std::vector<Claim> claims =
      tutorial_claims({.sinusoidal = bundled("sinusoidal", quiet), .none = bundled("none", quiet)});
  const bool as_expected = std::ranges::all_of(claims, &Claim::as_expected);
  Output output;
  json ? output.write(claims_json(claims, as_expected) + "\n")
       : output.show(to_text(claims, output));
  return as_expected ? 0 : kCheckFailed;
}

}  // namespace infer
