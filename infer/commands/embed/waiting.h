// How the threads of this program wait for one another.
#pragma once

namespace infer {

/// Starts this program anew with a bound on how long OpenMP's threads wait by spinning, unless the
/// environment has one. libgomp reads it before main, and its default of about 15 ms keeps cores
/// from the threads that are waited for: with three busy cores of four, a sentence took 300 ms
/// instead of 30. Returns where that cannot be done, or was.
void bound_spinning(char** argv);

}  // namespace infer
