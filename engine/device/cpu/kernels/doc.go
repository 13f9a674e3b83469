// Package kernels holds the inner loops of the CPU device: pure functions on slices, without goroutines. The device
// divides the work over rows, outputs and heads and calls them.
//
// Every kernel has one plain Go form, which is its definition, and vector forms for AVX2 with FMA, for AVX-512
// and (products and attention) for NEON that give the same bits. That holds because each result is one fixed chain of
// correctly rounded float32 operations:
//
//   - A matrix product accumulates every (row, output) by fused multiply-add over k = 0, 1, 2, …, beginning at +0.
//     Vector lanes run over outputs, so no width and no tile changes the chain, and neither the number of rows nor the
//     range of outputs in a call shows in the result.
//   - A sum along a vector uses 32 lanes: lane j adds elements j, j+32, …, the tail padded with zeros; then lanes j and
//     j+16 are added, then j and j+8, 4, 2, 1.
//   - exp is our own polynomial, evaluated by the same operations everywhere.
//
// NaN results are equal as NaN; their payload bits are not defined.
//
// Slices may be longer than needed, and are neither read nor written past what the doc comment names. A slice that is
// too short is a bug of the caller and panics.
package kernels
