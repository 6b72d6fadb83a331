// A table of position vectors by itself: how its rows relate to each other.
//
// A table is P [T, d] in double, row-major: sinusoidal_table() or Encoder::position_vectors().
// M = P Pᵀ [T, T] is the Gram matrix of its rows: what two positions have in common before any
// weight has read them.
#pragma once

#include <cstdint>
#include <span>

namespace phasor {

/// How far M depends on the offset i − j alone: the share of its variance that the mean of each
/// diagonal explains,
///
///     R² = 1 − Σ_ij (M_ij − D_{i−j})² / Σ_ij (M_ij − M̄)²,   D_δ = the mean of diagonal δ.
///
/// 1 for every sinusoid, where ⟨PE(p), PE(q)⟩ = Σ_i cos(ω_i(p − q)) (and where M is constant).
/// After Wang et al. 2021 (ICLR, "On Position Embeddings in BERT"): translation invariance.
double toeplitz_r2(std::span<const double> table, int64_t d_model);

/// How much each position's likeness to others is concentrated around it,
///
///     locality = (1/T) Σ_ij W_ij · 2^{−|i−j|},   W_ij = (M_ij − min_k M_ik) / Σ_k (M_ik − min M_i),
///
/// where W's rows are M's moved and scaled to be non-negative and to sum to 1 (1/T each where a row
/// of M is constant). 1 where each position is like itself alone. After Chen, Varoquaux & Suchanek
/// 2023 (arXiv 2310.12864).
double position_locality(std::span<const double> table, int64_t d_model);

/// How alike the two sides of a position are: 1 minus the share of W that does not meet its mirror
/// image,
///
///     symmetry = 1 − Σ_{i,k} |W_{i,i−k} − W_{i,i+k}| / Σ_{i,k} (W_{i,i−k} + W_{i,i+k}),
///
/// over all k ≥ 1 for which both places are in the table. 1 for every sinusoid, which therefore
/// cannot tell before from after by likeness alone. After the same source.
double position_symmetry(std::span<const double> table, int64_t d_model);

}  // namespace phasor
