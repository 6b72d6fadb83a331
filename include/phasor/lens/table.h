// A table of position vectors by itself: how its rows are related.
//
// A table is P [T, d] in double, row-major: sinusoidal_table() or Model::position_vectors(). M = P
// Pᵀ [T, T] is the Gram matrix of its rows: the similarity of two positions before any weight reads
// them. The measures leave out M's main diagonal, the product of each position with itself: it
// alone would give a table of random rows a Toeplitz R² of about 1/2. Compare with such a table in
// any case.
//
// Tables may come from float32. One unit in its last place, ε = 2^-23 of a value, moves a column x
// by up to ε‖x‖ and M_ij by up to 2ε‖P_i‖‖P_j‖. Whatever varies by no more counts as constant,
// because its variance would be that of rounding: a column with ‖x − x̄‖ ≤ ε‖x‖, a table of such
// columns, and M as toeplitz_r2() and neighbour_likeness() define it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "phasor/config.h"
#include "phasor/positions.h"

namespace [[gnu::visibility("default")]] phasor {

/// How far M depends only on the offset i − j: the share of its variance explained by the mean of
/// each diagonal,
///
///     R² = 1 − Σ_{i≠j} (M_ij − D_{i−j})² / Σ_{i≠j} (M_ij − M̄)²,   D_δ = the mean of diagonal δ.
///
/// 1 for every sinusoid, where ⟨PE(p), PE(q)⟩ = Σ_i cos(ω_i(p − q)), and if M is constant (the
/// denominator is at most Σ_{i≠j} (2ε‖P_i‖‖P_j‖)²); 0 if offsets explain nothing. After the
/// translation invariance of Wang et al. 2021 ("On Position Embeddings in BERT", ICLR).
double toeplitz_r2(std::span<const double> table, int64_t d_model);

/// How much of a position's likeness to others lies close by,
///
///     (1/T) Σ_{i≠j} W_ij · 2^{1−|i−j|},
///
/// where row i of W is row i of M, shifted and scaled to minimum 0 and sum 1 over j ≠ i (and
/// 1/(T−1) everywhere if it is constant: if the sum is at most 4ε(T−1)·‖P_i‖·max_j ‖P_j‖). 1 if
/// each position is like its nearest neighbours only; 0 for a single row. Not the locality of Chen,
/// Varoquaux & Suchanek 2023 (arXiv 2310.12864), from which it takes the powers of two: theirs is
/// of a matrix of attention weights as they are, main diagonal included, and 2^{−|i−j|}.
double neighbour_likeness(std::span<const double> table, int64_t d_model);

/// How alike the two sides of a position are: 1 minus the share of W (see neighbour_likeness())
/// that differs from its mirror image,
///
///     1 − Σ_{i,k} |W_{i,i−k} − W_{i,i+k}| / Σ_{i,k} (W_{i,i−k} + W_{i,i+k}),
///
/// over all k ≥ 1 for which both places are in the table. 1 for every sinusoid, which therefore
/// cannot tell before from after by similarity alone. Not the symmetry of the same source, which is
/// 1 minus the mean difference of attention weights, scaled to 0 … 1 in each row by itself.
double mirror_likeness(std::span<const double> table, int64_t d_model);

/// The measure between two rows. kCosineDistance: 1 − cos(p, q), and 1 if a row is zero.
/// kEuclidean: ‖p − q‖. kDotProduct: ⟨p, q⟩, which is M.
enum class RowMeasure { kCosineDistance, kEuclidean, kDotProduct };

/// Every row with every row, [T, T]. For a sinusoid of even width d, ⟨PE(p), PE(q)⟩ = Σ_i cos(ω_i(p
/// − q)), ‖PE(p)‖² = d/2, and the cosine distance is 1 − (2/d) Σ_i cos(ω_i(p − q)).
std::vector<double> row_matrix(std::span<const double> table, int64_t d_model, RowMeasure measure);

/// The angle of each pair that has both columns, clockwise from twelve, in 0 … 2π. [T, pairs]
std::vector<double> clock_angles(std::span<const double> table, int64_t d_model,
                                 std::span<const ColumnPair> pairs);

/// D_δ, the mean of M's diagonal δ = 0 … T − 1: the similarity of two positions δ apart. [T]
std::vector<double> dot_product_by_offset(std::span<const double> table, int64_t d_model);

/// The first offset δ with D_δ > D_{δ−1}: from there on, a larger distance no longer means less
/// similar. Empty if the dot product only falls. 44 for a sinusoid of width 512.
std::optional<int64_t> first_rise(std::span<const double> table, int64_t d_model);

/// Two rows and their distance.
struct RowPair {
  int64_t row = 0;
  int64_t offset = 0;  // the other one is row + offset
  double distance = 0;
};

/// The two rows that are nearest to each other, min ‖P_p − P_q‖ over p ≠ q (the first such pair):
/// the table tells positions apart as long as this is large compared with the noise. Throws
/// InvalidArgument if there is only one row.
RowPair nearest_rows(std::span<const double> table, int64_t d_model);

/// Local monotonicity: how often a position is more similar to a place than to the one just before
/// it, over steps from offset δ to δ + 1 ≤ max_offset, to either side, δ ≥ 1 (Wang et al. 2021,
/// property 1, over neighbours only). About half of the steps in a table of random rows.
struct Monotonicity {
  int64_t violations = 0;  // M_{i,i±(δ+1)} > M_{i,i±δ}
  int64_t steps = 0;       // all
};
/// Of the rows of a table [T, d_model].
Monotonicity local_monotonicity(std::span<const double> table, int64_t d_model,
                                int64_t max_offset = 20);

/// The matrix R_k with PE(p + k) = R_k PE(p) for every p and any real k, [d_model, d_model]: the
/// columns of each pair turn by ωk, [cos ωk, sin ωk; −sin ωk, cos ωk] on (sin ωp, cos ωp).
/// Orthogonal, and R_j R_k = R_{j+k} (Vaswani et al. 2017 §3.5: "PE_{pos+k} can be represented as a
/// linear function of PE_pos"). Throws InvalidArgument for an odd width of kPaper and kMarian,
/// whose last sine has no cosine.
std::vector<double> rotation(SinusoidalLayout layout, int64_t d_model, double k,
                             double base = 10000.0);

/// How well one matrix maps every row of a table to the row k places on, P_{p+k} ≈ P_p R, as R² = 1
/// − Σ‖P_{p+k} − P_p R‖² / Σ‖P_{p+k} − mean‖². R is the least-squares solution of least norm over
/// every other p; `held_out` is over the remaining p, both ways round, with the mean of the fitted
/// rows. Directions of P weaker than ε of the strongest are ignored. If a denominator is at most
/// Σ(2ε‖P_{p+k}‖)², R² is 1 if the numerator is too, and 0 otherwise. 1 for every sinusoid with
/// enough rows to span the others. About −1 for random rows, where `fitted` may still be 1. Any
/// smooth table scores high for small k, because a held-out row lies between two fitted ones:
/// compare with `unmoved`, the same for P_{p+k} ≈ P_p. Throws InvalidArgument for k < 1 and for
/// fewer than k + 2 rows.
struct LinearShift {
  double fitted = 0;
  double held_out = 0;
  double unmoved = 0;
};
/// Of the rows of a table [T, d_model].
LinearShift linear_shift(std::span<const double> table, int64_t d_model, int64_t k);

/// The strongest frequency of a column without its mean, by the discrete Fourier transform.
struct ColumnPeak {
  int64_t cycles = 0;  // in the table's T rows, 1 … ⌊T/2⌋; 0 if the column is constant
  double share = 0;    // of the column's variance; 1 for a sine of whole cycles
  double variance = 0;
};

/// For every column, [d_model]. Rounding to float32 moves the share of a column that varies by kε
/// by about 0.3/k, so means over columns should weight them by their variance. A column of noise
/// has a share of about ln(T/2) / (T/2); sines of any frequency at least 0.4 (they spread over
/// their neighbours). Learned positions also tend to have few and low frequencies (Song & Zhong
/// 2023, arXiv 2310.04861).
std::vector<ColumnPeak> column_peaks(std::span<const double> table, int64_t d_model);

/// Linear centred kernel alignment of two tables of the same T rows,
///
///     CKA = ‖BᵀA‖² / (‖AᵀA‖·‖BᵀB‖)   (Frobenius norms, rows without their mean),
///
/// Kornblith et al. 2019 (arXiv 1905.00414). 1 if they are equal up to rotation, scale and shift; 0
/// if neither predicts the other linearly; near 1 for random tables with few rows compared with
/// their widths. 0 if a table is constant.
double linear_cka(std::span<const double> a, int64_t a_width, std::span<const double> b,
                  int64_t b_width);

/// The residual of table B after the best rotation, scale and shift of A onto it, as a share of B:
///
///     min_{Q, s} ‖B/‖B‖ − s·AQ/‖A‖‖² = 1 − (Σσ(AᵀB) / (‖A‖·‖B‖))²   (rows without their mean),
///
/// Schönemann 1966 and Gower 1975. 0 if they are equal up to these, at most 1. A narrower table
/// counts as if padded with columns of zeros. 1 if a table is constant.
double procrustes_distance(std::span<const double> a, int64_t a_width, std::span<const double> b,
                           int64_t b_width);

/// ‖X‖²/σ₁² of the rows less their mean, X = P − P̄ (Frobenius norm, largest singular value): the
/// effective number of directions in which they vary, from 1 to min(T − 1, d) (Rudelson &
/// Vershynin 2007, who do not subtract a mean). 0 if all rows are equal. [T, d_model]
double stable_rank(std::span<const double> table, int64_t d_model);

/// The rows projected onto their two strongest principal axes.
struct PlaneMap {
  std::vector<double> points;        // [T, 2]
  std::array<double, 2> share = {};  // of the rows' variance, along each axis
};

/// Deterministic: on each axis, the first row that is off the mean is on the positive side.
PlaneMap principal_plane(std::span<const double> table, int64_t d_model);

/// A table of random numbers between −1 and 1, the same everywhere. [rows, d_model]
std::vector<double> uniform_table(int64_t rows, int64_t d_model);

/// Random tables that are as smooth as this one, [count][T, d_model]: what a measure gives them is
/// due to smoothness alone. Every column is drawn by itself from a Gaussian process of mean 0 and
/// covariance C/d, where C is the Toeplitz matrix of dot_product_by_offset() with its negative
/// eigenvalues, if there are any, set to 0 and the others scaled to the same sum T·D_0. So the
/// expected Gram matrix is C, which is M for every sinusoid. The idea is that of surrogate data
/// (Theiler et al. 1992, Physica D 58). The same seed gives the same tables; with a larger `count`
/// more follow. Time grows as T³.
std::vector<std::vector<double>> stationary_tables(std::span<const double> table, int64_t d_model,
                                                   int64_t count, uint64_t seed = 1);

}  // namespace phasor
