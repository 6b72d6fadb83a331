// A table of position vectors by itself: how its rows relate to each other.
//
// A table is P [T, d] in double, row-major: sinusoidal_table() or Encoder::position_vectors().
// M = P Pᵀ [T, T] is the Gram matrix of its rows: what two positions have in common before any
// weight has read them. The measures leave out M's main diagonal, where each position meets itself:
// it alone would give a table of random rows a Toeplitz R² of about 1/2. Compare with such a table
// all the same.
#pragma once

#include <cstdint>
#include <span>

namespace phasor {

/// How far M depends on the offset i − j alone: the share of its variance that the mean of each
/// diagonal explains,
///
///     R² = 1 − Σ_{i≠j} (M_ij − D_{i−j})² / Σ_{i≠j} (M_ij − M̄)²,   D_δ = the mean of diagonal δ.
///
/// 1 for every sinusoid, where ⟨PE(p), PE(q)⟩ = Σ_i cos(ω_i(p − q)), and where M is constant; 0 if
/// offsets explain nothing. After the translation invariance of Wang et al. 2021 ("On Position
/// Embeddings in BERT", ICLR).
double toeplitz_r2(std::span<const double> table, int64_t d_model);

/// How much of a position's likeness to others lies close by,
///
///     locality = (1/T) Σ_{i≠j} W_ij · 2^{1−|i−j|},
///
/// where row i of W is row i of M, moved and scaled to have minimum 0 and sum 1 over j ≠ i (and
/// 1/(T−1) everywhere where it is constant). 1 where each position is like its next neighbours and
/// no other; 0 for a single row. After Chen, Varoquaux & Suchanek 2023 (arXiv 2310.12864), who keep
/// the diagonal.
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
