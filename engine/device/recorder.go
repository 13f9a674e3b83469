package device

import "fmt"

// Recorder records the operations of a pass and checks their shapes. A device embeds it in its pass, which so has every
// recording method of Pass, and runs Ops in order. It allocates nothing once its lists have grown. A breach of the
// contract panics.
type Recorder struct {
	Segments []Segment
	Rows     int // of all segments together
	Ops      []Op

	// The operations by kind, in the order of recording. Their doc comments are those of the recording methods.
	Embeds          []Embed
	RMSNorms        []RMSNorm
	Linears         []Linear
	SwiGLUs         []SwiGLU
	Gathers         []Gather
	Convs           []Conv
	DeltaRules      []DeltaRule
	GatedNorms      []GatedNorm
	Rotations       []Rotation
	AttentionInputs []AttentionInput
	Attentions      []Attention
	TopKs           []TopK
}

// Op is one recorded operation: the Index-th of its kind's list.
type Op struct {
	Kind  Kind
	Index int
}

// Kind names an operation.
type Kind int

// The kinds of operations, one for each recording method of Pass.
const (
	KindEmbed Kind = iota
	KindRMSNorm
	KindLinear
	KindSwiGLU
	KindGather
	KindConv
	KindDeltaRule
	KindGatedNorm
	KindRotation
	KindAttentionInput
	KindAttention
	KindTopK
)

// ConvTaps is the kernel size of Conv, the only one of the families that we run.
const ConvTaps = 4

// Embed is a recorded Pass.Embed.
type Embed struct {
	Dst    Buffer
	Table  Matrix
	Tokens []int32
}

// RMSNorm is a recorded Pass.RMSNorm.
type RMSNorm struct {
	Dst, X, Weight Buffer
	Eps            float32
	Rows, Column   int
}

// Linear is a recorded Pass.Linear.
type Linear struct {
	X        Buffer
	Products []Product
	Rows     int
}

// SwiGLU is a recorded Pass.SwiGLU.
type SwiGLU struct {
	Dst, Gate, Up Buffer
	Rows          int
}

// Gather is a recorded Pass.Gather.
type Gather struct {
	Dst, Src Buffer
	Indices  []int32
}

// Rotation is a recorded Pass.Rotation.
type Rotation struct {
	Dst     Buffer
	Inverse []float64
}

// TopK is a recorded Pass.TopK.
type TopK struct {
	Values, IDs, Src Buffer
	Rows             int
}

// Begin implements Pass.
func (r *Recorder) Begin(segments []Segment) {
	r.Segments, r.Rows, r.Ops = segments, 0, r.Ops[:0]
	r.Embeds, r.RMSNorms, r.Linears, r.SwiGLUs = r.Embeds[:0], r.RMSNorms[:0], r.Linears[:0], r.SwiGLUs[:0]
	r.Gathers, r.Convs, r.DeltaRules, r.GatedNorms = r.Gathers[:0], r.Convs[:0], r.DeltaRules[:0], r.GatedNorms[:0]
	r.Rotations, r.AttentionInputs = r.Rotations[:0], r.AttentionInputs[:0]
	r.Attentions, r.TopKs = r.Attentions[:0], r.TopKs[:0]
	for i, s := range segments {
		if s.Row != r.Rows || s.N <= 0 || s.Start < 0 {
			panic(fmt.Sprintf("device: segment %d has rows [%d,%d) after %d", i, s.Row, s.Row+s.N, r.Rows))
		}
		r.Rows += s.N
	}
}

// record appends o to its kind's list and to the operations. What has no rows is not recorded.
func record[T any](r *Recorder, kind Kind, list *[]T, rows int, o T) {
	if rows == 0 {
		return
	}
	r.Ops = append(r.Ops, Op{kind, len(*list)})
	*list = append(*list, o)
}

// Embed implements Pass.
func (r *Recorder) Embed(dst Buffer, table Matrix, tokens []int32) {
	wantRows(len(tokens), dst)
	wantCols("embedding", dst.Cols(), table.In())
	record(r, KindEmbed, &r.Embeds, len(tokens), Embed{dst, table, tokens})
}

// RMSNorm implements Pass.
func (r *Recorder) RMSNorm(dst, x, weight Buffer, eps float32, rows, column int) {
	wantRows(rows, dst, x)
	wantRows(1, weight)
	wantCols("norm weight", weight.Cols(), x.Cols())
	if column < 0 || column+x.Cols() > dst.Cols() {
		panic(fmt.Sprintf("device: a norm of %d columns at column %d of %d", x.Cols(), column, dst.Cols()))
	}
	record(r, KindRMSNorm, &r.RMSNorms, rows, RMSNorm{dst, x, weight, eps, rows, column})
}

// Linear implements Pass.
func (r *Recorder) Linear(x Buffer, products []Product, rows int) {
	wantRows(rows, x)
	for i := range products {
		wantRows(rows, products[i].Dst)
		wantCols("input", x.Cols(), products[i].W.In())
		wantCols("product", products[i].Dst.Cols(), products[i].W.Out())
	}
	record(r, KindLinear, &r.Linears, rows, Linear{x, products, rows})
}

// SwiGLU implements Pass.
func (r *Recorder) SwiGLU(dst, gate, up Buffer, rows int) {
	wantRows(rows, dst, gate, up)
	wantCols("gate", gate.Cols(), dst.Cols())
	wantCols("up", up.Cols(), dst.Cols())
	record(r, KindSwiGLU, &r.SwiGLUs, rows, SwiGLU{dst, gate, up, rows})
}

// Gather implements Pass.
func (r *Recorder) Gather(dst, src Buffer, indices []int32) {
	wantRows(len(indices), dst)
	wantCols("source", src.Cols(), dst.Cols())
	record(r, KindGather, &r.Gathers, len(indices), Gather{dst, src, indices})
}

// Conv implements Pass.
func (r *Recorder) Conv(c Conv) {
	wantRows(r.Rows, c.Dst, c.X)
	wantRows(1, c.Weight)
	wantCols("convolution", c.Dst.Cols(), c.X.Cols())
	wantCols("taps", c.Weight.Cols(), ConvTaps*c.X.Cols())
	record(r, KindConv, &r.Convs, r.Rows, c)
}

// DeltaRule implements Pass.
func (r *Recorder) DeltaRule(d DeltaRule) {
	g := r.Segments[0].State.Geometry()
	wantRows(r.Rows, d.Dst, d.QKV, d.A, d.B)
	wantRows(1, d.ALog, d.DTBias)
	wantCols("QKV", d.QKV.Cols(), g.ConvChannels)
	wantCols("delta rule output", d.Dst.Cols(), g.ValueHeads*g.ValueDim)
	wantCols("A", d.A.Cols(), g.ValueHeads)
	wantCols("B", d.B.Cols(), g.ValueHeads)
	record(r, KindDeltaRule, &r.DeltaRules, r.Rows, d)
}

// GatedNorm implements Pass.
func (r *Recorder) GatedNorm(g GatedNorm) {
	wantRows(r.Rows, g.Dst, g.O, g.Z)
	wantRows(1, g.Weight)
	wantCols("norm weight", g.Weight.Cols(), g.HeadDim)
	wantCols("O", g.O.Cols(), g.Dst.Cols())
	wantCols("Z", g.Z.Cols(), g.Dst.Cols())
	record(r, KindGatedNorm, &r.GatedNorms, r.Rows, g)
}

// Rotation implements Pass.
func (r *Recorder) Rotation(dst Buffer, inverse []float64) {
	wantRows(r.Rows, dst)
	wantCols("rotation", dst.Cols(), 2*len(inverse))
	record(r, KindRotation, &r.Rotations, r.Rows, Rotation{dst, inverse})
}

// AttentionInput implements Pass.
func (r *Recorder) AttentionInput(in AttentionInput) {
	g := in.KV.Geometry()
	wantRows(r.Rows, in.Q, in.QGate, in.K, in.V, in.Rotation)
	wantRows(1, in.QNorm, in.KNorm)
	wantCols("query and gate", in.QGate.Cols(), 2*in.Q.Cols())
	wantCols("keys", in.K.Cols(), g.Heads*g.HeadDim)
	wantCols("values", in.V.Cols(), in.K.Cols())
	wantCols("query norm", in.QNorm.Cols(), g.HeadDim)
	wantCols("key norm", in.KNorm.Cols(), g.HeadDim)
	record(r, KindAttentionInput, &r.AttentionInputs, r.Rows, in)
}

// Attention implements Pass.
func (r *Recorder) Attention(a Attention) {
	wantRows(r.Rows, a.Dst, a.Q, a.QGate)
	wantCols("queries", a.Q.Cols(), a.Dst.Cols())
	wantCols("query and gate", a.QGate.Cols(), 2*a.Dst.Cols())
	record(r, KindAttention, &r.Attentions, r.Rows, a)
}

// maxNumberedCols is how many columns f32 numbers exactly.
const maxNumberedCols = 1 << 24

// TopK implements Pass.
func (r *Recorder) TopK(values, ids, src Buffer, rows int) {
	wantRows(rows, values, ids, src)
	wantCols("ids", ids.Cols(), values.Cols())
	if values.Cols() > src.Cols() || src.Cols() > maxNumberedCols {
		panic(fmt.Sprintf("device: the %d largest of %d columns", values.Cols(), src.Cols()))
	}
	record(r, KindTopK, &r.TopKs, rows, TopK{values, ids, src, rows})
}

func wantRows(rows int, buffers ...Buffer) {
	for _, b := range buffers {
		if b.Rows() < rows {
			panic(fmt.Sprintf("device: %d rows in a buffer of %d", rows, b.Rows()))
		}
	}
}

func wantCols(what string, found, wanted int) {
	if found != wanted {
		panic(fmt.Sprintf("device: %s has %d columns, wanted %d", what, found, wanted))
	}
}
