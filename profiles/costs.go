package profiles

// Costs is what a model costs in bytes under given settings. Weights and scratch are rounded up, so that a projection
// errs on the safe side. Everything that plans or admits adds these numbers up through ProjectedBytes: one rule.
type Costs struct {
	WeightsBytes       int64 `json:"weights_bytes"`
	DraftBytes         int64 `json:"draft_bytes"` // the separate draft model, 0 without one
	MTPBytes           int64 `json:"mtp_bytes"`   // the MTP head, 0 unless it drafts
	StateBytes         int64 `json:"state_bytes"` // live recurrent state, draft ring and context rows of one sequence
	RestorePointBytes  int64 `json:"restore_point_bytes"`
	ScratchBytes       int64 `json:"scratch_bytes"`
	KVBytesPerToken    int64 `json:"kv_bytes_per_token"`
	MTPKVBytesPerToken int64 `json:"mtp_kv_bytes_per_token"` // 0 unless the MTP head drafts
}

// Load is how much of the varying parts is in use: sequences that are being answered, restore points kept, and tokens
// of context in all sequences together (keys and values are one pool).
type Load struct {
	Sequences     int
	RestorePoints int
	Tokens        int64
}

// ProjectedBytes is the memory of a load: weights + draft + MTP head + scratch, + state per sequence, + restore points,
// + tokens x (KV + MTP KV).
func (c Costs) ProjectedBytes(l Load) int64 {
	return c.WeightsBytes + c.DraftBytes + c.MTPBytes + c.ScratchBytes +
		int64(l.Sequences)*c.StateBytes + int64(l.RestorePoints)*c.RestorePointBytes + l.Tokens*c.perToken()
}

// TokensWithin is how many tokens a budget holds beside the rest of the load, 0 when the rest alone is too much.
// l.Tokens is ignored.
func (c Costs) TokensWithin(budgetBytes int64, l Load) int64 {
	l.Tokens = 0
	return max(0, (budgetBytes-c.ProjectedBytes(l))/c.perToken())
}

func (c Costs) perToken() int64 { return c.KVBytesPerToken + c.MTPKVBytesPerToken }

// pageBytes is the page of Apple silicon: mapped weights take whole pages.
const pageBytes = 16 << 10

// CostsOf prices a model. draft nil or kind other than DFlash2: no separate draft. The MTP head counts only when it
// drafts. A restore point is one sequence's recurrent state with the draft's context rows; keys and values are shared
// by
// prefix.
func CostsOf(g Geometry, dflash2 *DraftGeometry, format KVFormat, draft DraftChoice, chunkTokens int) Costs {
	c := Costs{
		WeightsBytes:    roundUp(g.WeightsBytes, pageBytes),
		StateBytes:      g.StateBytes(),
		ScratchBytes:    scratchBytes(g, chunkTokens, draft.Tokens+1),
		KVBytesPerToken: g.KVBytesPerToken(format),
	}
	c.RestorePointBytes = c.StateBytes
	if d, ok := DraftOf(draft.Kind); ok {
		d.price(&c, g, dflash2, format)
	}
	return c
}

// scratchBytes is what a pass needs beside weights and state: the activations of a chunk, the partial sums of tiled
// attention (bounded, whatever the length of the context), the logits of a verification, and a margin of a sixth of
// the weights for the allocator and what is not counted. With chunks of 2,048 tokens the 27B comes to 3 GiB, the
// project's figure for that model. 16-bit operands, f32 residual and accumulation; rounded up to 64 MiB.
func scratchBytes(g Geometry, chunkTokens, logitRows int) int64 {
	chunk := int64(min(chunkTokens, g.MaxPositions))
	valueDim := int64(g.LinearValueHeads) * int64(g.LinearValueDim)
	convDim := 2*int64(g.LinearKeyHeads)*int64(g.LinearKeyDim) + valueDim
	queryDim := int64(g.AttentionHeads) * int64(g.HeadDim)
	kvDim := int64(g.KVHeads) * int64(g.HeadDim)

	// in and out f32, normed 16 bit
	residual := 10 * int64(g.HiddenSize)
	// gate, up, their product
	mlp := 6 * int64(g.IntermediateSize)
	// k, v, U, W of the chunk form, f32
	deltaTiles := 4 * int64(g.LinearValueHeads) * 2 * (int64(g.LinearKeyDim) + int64(g.LinearValueDim))
	// before and after the convolution, z, output f32
	linear := 4*convDim + 2*valueDim + 4*valueDim + deltaTiles
	full := 4*queryDim + 4*kvDim + 2*queryDim                                 // query and gate, key and value, output
	attentionPartials := 4 * int64(g.AttentionHeads) * (int64(g.HeadDim) + 2) // sums, maximum and weight, f32

	activations := chunk * (residual + max(mlp, linear, full) + attentionPartials)
	logits := int64(logitRows) * int64(g.VocabSize) * 4 * 2 // logits and the distribution made of them
	return roundUp(activations+logits+g.WeightsBytes/6, 64<<20)
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

func floorTokens(n int64) int { return int(n / WindowStepTokens * WindowStepTokens) }
