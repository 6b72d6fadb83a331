// Order: reorderings of a sequence's tokens, and how far they move its states.
//
// A reordering of T tokens is a list: token order[p] of the original moves to place p of the new
// sequence. In each function, `movable` lists the places whose tokens take part, ascending; all
// others (such as special tokens) stay. They throw InvalidArgument for a place outside the
// sequence. The same seed gives the same order on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace phasor {

/// Two movable tokens, drawn from `seed`, change places; the identity if there are fewer.
std::vector<int64_t> swapped_order(int64_t num_tokens, std::span<const int64_t> movable,
                                   uint64_t seed);
/// The last movable token comes first.
std::vector<int64_t> reversed_order(int64_t num_tokens, std::span<const int64_t> movable);
/// Drawn uniformly from all orders, including the original one.
std::vector<int64_t> shuffled_order(int64_t num_tokens, std::span<const int64_t> movable,
                                    uint64_t seed);

/// The movable tokens are cut into blocks of n from the first on (the last may be shorter), and the
/// blocks are put in an order drawn from `seed`; inside a block the order stays. With n = 1 every
/// token moves by itself, with larger n more of the local order stays (Sinha et al. 2021, arXiv
/// 2104.06644). Throws InvalidArgument for n < 1.
std::vector<int64_t> shuffled_ngrams_order(int64_t num_tokens, std::span<const int64_t> movable,
                                           int64_t n, uint64_t seed);

/// The ids in their new order: element p is token_ids[order[p]].
std::vector<int32_t> reordered(std::span<const int32_t> token_ids, std::span<const int64_t> order);

/// How far reordering moves each token's state, following the token to its new place:
///
///     mean_t ‖h(πx)_{π(t)} − h(x)_t‖ / ‖h(x)_t‖,   π(order[p]) = p,
///
/// for h(x) = `states` and h(πx) = `reordered_states`, both [T, C]. Without positions an encoder is
/// permutation equivariant, f(πx) = π f(x), and this is 0 up to rounding (Yun et al. 2020, arXiv
/// 1912.10077, Claim 1).
double order_sensitivity(std::span<const float> states, std::span<const float> reordered_states,
                         std::span<const int64_t> order, int64_t d_model);

}  // namespace phasor
