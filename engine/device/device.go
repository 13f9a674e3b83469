package device

import "context"

// PageTokens is the number of positions in a page of attention keys and values.
const PageTokens = 256

// Device creates memory and passes. Handles of one device must not be given to another. Creating is safe from several
// goroutines; passes run one at a time.
type Device interface {
	// Name is "cpu" or "metal".
	Name() string
	// Numerics names the arithmetic, e.g. "cpu-f32-1": states and points made under one name are not restored under
	// another.
	Numerics() string
	// Matrix uploads a weight matrix. The device may keep m's slices and read them for as long as it lives.
	Matrix(m MatrixData) (Matrix, error)
	// Vector uploads [n] f32, copied.
	Vector(data []float32) (Buffer, error)
	// Buffer makes a zeroed activation buffer [rows, cols] f32.
	Buffer(rows, cols int) (Buffer, error)
	// KV makes a pool of pages of attention keys and values.
	KV(g KVGeometry) (KV, error)
	// KVBytes is the memory that a pool of g would hold with every page touched; it makes none.
	KVBytes(g KVGeometry) int64
	// KVFormats names the formats that are worth choosing here, indexed by KVFormat: the device's own first, then those
	// that trade precision for memory.
	KVFormats() []string
	// State makes a zeroed recurrent state of one sequence.
	State(g StateGeometry) (State, error)
	// NewPass makes a reusable recorder.
	NewPass() Pass
	// Close ends the device's threads and gives its memory back. No pass may be running.
	Close() error
}

// Format is the element format of a weight matrix.
type Format int

// Formats. Affine is MLX's: value = scale·q + bias per group along a row.
const (
	FormatF32 Format = iota
	FormatF16
	FormatBF16
	FormatAffine
)

// MatrixData is a weight matrix [Out, In], row-major, little-endian, of any alignment. For FormatAffine, Data is a bit
// stream per row (element i in bits [i·Bits, (i+1)·Bits)), Scales and Biases are [Out, In/Group] of ScaleFormat (a
// float format). Bits: 2, 3, 4, 5, 6, 8. Group: 32, 64, 128.
type MatrixData struct {
	Name           string // for messages
	Out, In        int
	Format         Format
	Bits, Group    int
	Data           []byte
	Scales, Biases []byte
	ScaleFormat    Format
}

// Matrix is an uploaded weight matrix.
type Matrix interface {
	Out() int
	In() int
	// Bytes is the memory that the device holds for it.
	Bytes() int64
}

// Buffer is f32 device memory [Rows, Cols] that the host can see.
type Buffer interface {
	Rows() int
	Cols() int
	// Floats is the whole buffer, row-major. Read it after Run returned, write it before Run; the device owns it.
	Floats() []float32
	// Release gives the memory back. The buffer must not be used afterwards.
	Release()
}

// KVFormat is how keys and values are kept.
type KVFormat int

const (
	// KVNative is the device's own: f32 on the CPU, f16 on Metal.
	KVNative KVFormat = iota
	// KVQ8 keeps 8 bits a value, for head sizes that are a multiple of KVGroup: per KVGroup values along the head a
	// bf16 scale s and a bf16 bias b. b is the least value rounded down, s a 255th of the largest value less b, rounded
	// up, 0 below 1e-37; code q = round((x-b)/s) in [0, 255], 0 where s is; the value is s·q + b. A group with a value
	// that is not finite is NaN.
	KVQ8
)

// KVGroup is how many values of KVQ8 share a scale and a bias.
const KVGroup = 64

// KVGeometry sizes a pool: Layers attention layers, each with Heads key and value heads of HeadDim, Pages pages.
type KVGeometry struct {
	Layers, Heads, HeadDim, Pages int
	Format                        KVFormat
}

// KV is a pool of pages. One page holds PageTokens positions of the keys (after norm and rotation) and values of all
// layers. The layout is the device's own.
type KV interface {
	Geometry() KVGeometry
	// CopyPage copies page src to page dst. Not during a pass.
	CopyPage(dst, src int32)
	// Read copies one position out, for tests and for tiers: keys and values [Heads, HeadDim].
	Read(keys, values []float32, layer int, page int32, offset int)
	// Bytes is the memory held when every page has been touched.
	Bytes() int64

	// Pages can be read and written whole. The layout of the bytes is the device's own; its Numerics name stands for
	// it. Not during a pass that writes those positions.

	// PageBytes is the size of the first tokens positions of a page, all layers, tokens in [1, PageTokens].
	PageBytes(tokens int) int
	// ReadPage copies the first tokens positions out, [PageBytes(tokens)].
	ReadPage(dst []byte, page int32, tokens int)
	// WritePage writes them, into any page.
	WritePage(page int32, src []byte, tokens int)
}

// PageReturn is a KV that can return the memory of pages to the system. Not during a pass.
type PageReturn interface {
	KV
	// ReturnPages clears pages: they are as before they were written. After an error the KV cannot be used.
	ReturnPages(pages []int32) error
}

// StateGeometry sizes the recurrent state of one sequence over Layers gated delta net layers.
type StateGeometry struct {
	Layers                 int
	KeyHeads, ValueHeads   int
	KeyDim, ValueDim       int
	ConvChannels, ConvTaps int
}

// State is the recurrent state of one sequence: per layer S f32 [ValueHeads, ValueDim, KeyDim] and the last ConvTaps-1
// rows before the convolution [ConvTaps-1, ConvChannels], oldest first. A copy of it, with page references, is a
// restore point.
type State interface {
	Geometry() StateGeometry
	// Reset zeroes it. Not during a pass.
	Reset()
	// Copy makes it equal to from, bit for bit. Not during a pass.
	Copy(from State)
	// Read copies layer's S and tail out, for tests; sizes as above.
	Read(s, tail []float32, layer int)
	Bytes() int64
	// ReadAll and WriteAll copy the state out and in whole, [Bytes].
	ReadAll(dst []byte)
	WriteAll(src []byte)
	Release()

	// The state can be rewound by a tape, see Tape. None of these methods may run during a pass.

	// Record begins to keep the latest tokens, at least this many of them. 0 ends it.
	Record(tokens int) error
	// TapeLen is how many tokens can be rewound now.
	TapeLen() int
	// Rewind undoes the last n tokens, n in [0, TapeLen].
	Rewind(n int)
	// CutTape copies the base and the tape; nil without a tape. The caller releases both.
	CutTape() (base State, tape Tape, err error)
	// Replay advances the state by the first n tokens of a tape whose base it equals.
	Replay(tape Tape, n int)
}

// Segment is a run of N consecutive tokens of one sequence in a pass: rows [Row, Row+N) of every activation buffer, at
// absolute positions [Start, Start+N).
type Segment struct {
	Row, N, Start int
	// State is read and advanced by Conv and DeltaRule. Two segments of a pass never share one.
	State State
	// Pages is the page table: position p is in page Pages[p/PageTokens]. It covers at least Start+N positions.
	Pages []int32
	// Policy limits what the rows see in attention. Zero is exact.
	Policy AttentionPolicy
}

// AttentionPolicy is the approximate prefill of a sink and a window: a row at position t < DenseFrom sees keys p <= t
// with p < Sink or p > t-Window; rows from DenseFrom on see all. Window 0 means exact attention for every row.
type AttentionPolicy struct{ Sink, Window, DenseFrom int }

// Pass records operations over the rows of its segments and runs them in order. Recording keeps the slices that it is
// given until Run has returned; recording and running allocate nothing once warm. A pass is used by one goroutine at a
// time.
type Pass interface {
	// Begin clears the recording and begins again with these segments, whose rows are dense from 0.
	Begin(segments []Segment)

	// Embed writes table rows: dst[i] = table[tokens[i]].
	Embed(dst Buffer, table Matrix, tokens []int32)
	// RMSNorm writes dst[i, column:] = x[i]/sqrt(mean(x[i]²)+eps)·weight for rows [0, rows). dst may be x.
	RMSNorm(dst, x, weight Buffer, eps float32, rows, column int)
	// Linear computes each product from the same rows [0, rows) of x.
	Linear(x Buffer, products []Product, rows int)
	// SwiGLU writes dst = silu(gate)·up, element by element, for rows [0, rows). dst may be gate.
	SwiGLU(dst, gate, up Buffer, rows int)
	// Gather writes dst[i] = src[indices[i]].
	Gather(dst, src Buffer, indices []int32)

	Conv(Conv)
	DeltaRule(DeltaRule)
	GatedNorm(GatedNorm)

	// Rotation writes the rotary table of every row: dst [rows, 2·len(inverse)] = cos | sin of position·inverse[i].
	Rotation(dst Buffer, inverse []float64)
	AttentionInput(AttentionInput)
	Attention(Attention)

	// TopK writes the k largest values of each row of src, rows [0, rows), into values [rows, k], largest first and of
	// equal ones the leftmost first, and their columns, as numbers, into ids [rows, k]. k = 1 is argmax. A row with a
	// NaN anywhere has no largest: all its values are NaN and all its ids -1. src has at most 1<<24 columns.
	TopK(values, ids, src Buffer, rows int)

	// Run executes what was recorded. A context that is already cancelled stops it before anything has happened (its
	// error is returned); a pass that has begun runs to its end. After any other error the states of all segments are
	// lost.
	Run(ctx context.Context) error
}

// Product is one product of Linear: Dst[i] = W·x[i], or Dst[i] += W·x[i] with Add (the residual stream).
type Product struct {
	W   Matrix
	Dst Buffer
	Add bool
}

// Conv is the depthwise causal convolution with silu: Dst[t,c] = silu(Σ_j Weight[j,c]·X[t-taps+1+j, c]), rows before
// the segment from the state's tail, which then holds the last taps-1 rows of X.
type Conv struct {
	Dst, X Buffer // [rows, channels]
	Weight Buffer // [taps, channels] as one vector: planes, oldest tap first
	Layer  int    // layer of the state
}

// DeltaRule advances the gated delta rule over every segment and writes its outputs.
// Per row and value head h with key head κ = h div (Hv/Hk):
// q = q/√(Σq²+1e-6)/√Dk; k = k/√(Σk²+1e-6); β = sigmoid(b); α = exp(-exp(ALog)·softplus(a+DTBias));
// S = αS; δ = β(v - S·k); S = S + δ kᵀ; o = S·q, with S [Dv,Dk]. Source: spec of Qwen3.5, HF torch recurrence.
// QKV, A and B are overwritten. A state that records keeps what its replay needs.
type DeltaRule struct {
	Dst          Buffer // [rows, Hv·Dv]
	QKV          Buffer // [rows, 2·Hk·Dk + Hv·Dv], after Conv
	A, B         Buffer // [rows, Hv]
	ALog, DTBias Buffer // [Hv]
	Layer        int    // layer of the state
}

// GatedNorm writes Dst = RMS(O per head of HeadDim, Eps)·Weight·silu(Z). Dst may be O.
type GatedNorm struct {
	Dst, O, Z Buffer // [rows, heads·HeadDim]
	Weight    Buffer // [HeadDim]
	HeadDim   int
	Eps       float32
}

// AttentionInput takes the query half of QGate (per head: query | gate), norms and rotates it into Q, norms and rotates
// K, and stores K and V at the rows' positions in the pages.
type AttentionInput struct {
	Q            Buffer // out [rows, H·D]
	QGate        Buffer // [rows, H·2·D]
	K, V         Buffer // [rows, Hkv·D]
	QNorm, KNorm Buffer // [D]
	Rotation     Buffer // from Pass.Rotation, [rows, rotary dims]
	KV           KV
	Layer        int // layer of the pool
	Eps          float32
}

// Attention writes Dst = softmax(Q·Kᵀ/√D)·V ⊙ sigmoid(gate half of QGate), causal, each row seeing the positions up to
// its own that its segment's policy leaves it. Query head h uses kv head h div (H/Hkv).
type Attention struct {
	Dst, Q Buffer // [rows, H·D]
	QGate  Buffer // [rows, H·2·D]
	KV     KV
	Layer  int
}
