// The claims of tutorials about positions, computed on the spot and shown source by source.
#pragma once

namespace infer {

/// Prints them; the exit code is kCheckFailed where a computed number is not what theory gives.
/// Notes are left out where `quiet`.
int show_claims(bool json, bool quiet);

}  // namespace infer
