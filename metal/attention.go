//go:build unix

package metal

import (
	"unsafe"

	"slipway/engine/device"
	"slipway/metal/kernels"
)

// decodeRows is the largest segment that uses attention_decode, which splits the keys. Longer segments go in tiles.
const decodeRows = 8

// A split is at least minSplitTokens, one page. There are at most maxSplits, because merging more takes longer. With
// the four key heads of the 27B they make 512 threadgroups, several for every core of the largest chip.
const (
	minSplitTokens = device.PageTokens
	maxSplits      = 128
)

var (
	decodeNames = map[int]string{64: "attention_decode_d64", 128: "attention_decode_d128",
		256: "attention_decode_d256"}
	decodeQ8Names = map[int]string{64: "attention_decode_q8_d64", 128: "attention_decode_q8_d128",
		256: "attention_decode_q8_d256"}
	flashNames = map[int]string{64: "attention_flash_d64", 128: "attention_flash_d128", 256: "attention_flash_d256"}
)

// decodeParams are what attention_decode and attention_combine get for a segment.
func decodeParams(o *device.Attention, g *device.Segment) kernels.AttentionDecodeParams {
	tokens := g.Start + g.N
	split := max(minSplitTokens, divide(divide(tokens, maxSplits), device.PageTokens)*device.PageTokens)
	return kernels.AttentionDecodeParams{AttentionParams: attentionParams(o, g), Splits: u32(divide(tokens, split)),
		SplitTokens: u32(split)}
}

func attentionParams(o *device.Attention, g *device.Segment) kernels.AttentionParams {
	pool := o.KV.(*kv).g
	return kernels.AttentionParams{Rows: u32(g.N), Row: u32(g.Row), Start: u32(g.Start),
		Heads: u32(o.Dst.Cols() / pool.HeadDim), KVHeads: u32(pool.Heads), Dim: u32(pool.HeadDim),
		Sink: u32(g.Policy.Sink), Window: u32(g.Policy.Window), DenseFrom: u32(g.Policy.DenseFrom),
		Scale: scaleOf(pool.HeadDim)}
}

// partialFloats is what attention_decode writes for a segment.
func partialFloats(q *kernels.AttentionDecodeParams) int {
	return int(q.Rows) * int(q.Heads) * int(q.Splits) * (int(q.Dim) + 2)
}

// decodeVariant is the kernel for split keys of the pages of k, where group query heads share a key head, and how many
// of these heads a threadgroup takes.
func (d *Device) decodeVariant(k *kv, group int) (v variant, heads int) {
	v = variant{library: "attention_decode", name: decodeNames[k.g.HeadDim], constants: [6]uint32{
		k.q8(), u32(divisor(group, 6))}, count: 2, threads: 128}
	if k.g.Format == device.KVQ8 {
		heads = divisor(group, 8)
		v = d.either(variant{library: "attention_decode_q8", name: decodeQ8Names[k.g.HeadDim], constants: [6]uint32{
			u32(heads)}, count: 1, threads: 128}, v)
	}
	if v.library == "attention_decode" {
		heads = int(v.constants[1])
	}
	return v, heads
}

// divisor is the largest divisor of n up to most.
func divisor(n, most int) int {
	for n%most != 0 {
		most--
	}
	return most
}

// combine is attention_decode's second kernel, which needs constants and uses none.
func (k *kv) combine() variant {
	return variant{library: "attention_decode", name: "attention_combine", constants: [6]uint32{k.q8(), 1}, count: 2,
		threads: k.g.HeadDim}
}

// decodes reports whether attention_decode takes a segment.
func (p *pass) decodes(o *device.Attention, g *device.Segment) bool {
	pool := o.KV.(*kv)
	return decodeNames[pool.g.HeadDim] != "" && g.N <= decodeRows && p.dev.either(pool.combine(), variant{}).name != ""
}

// encodeAttention runs the segments side by side. attention_combine merges the splits of those that decode.
func (p *pass) encodeAttention(e *encoder, o *device.Attention) error {
	if err := p.makePartial(o); err != nil {
		return err
	}
	pool, dst, q, gate := o.KV.(*kv), own(o.Dst), own(o.Q), own(o.QGate)
	heads := dst.cols / pool.g.HeadDim
	at := 0
	for i := range p.Segments {
		g := &p.Segments[i]
		if !p.decodes(o, g) {
			if err := p.encodeTiles(e, o, i); err != nil {
				return err
			}
			continue
		}
		params := decodeParams(o, g)
		v, together := p.dev.decodeVariant(pool, heads/pool.g.Heads)
		err := e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)),
			[3]int{int(params.Splits), heads / together, g.N}, [3]int{128, 1, 1},
			attentionBytes(o, g)*float64(g.N)/float64(together), 0,
			use{p.meta.partial, 4 * at, 1, write}, q.use(2, read), use{pool.keys[o.Layer], 0, 3, read},
			use{pool.values[o.Layer], 0, 4, read}, p.integers(p.meta.pages[i], 5))
		if err != nil {
			return err
		}
		at += partialFloats(&params)
	}
	at = 0
	e.phase()
	for i := range p.Segments {
		g := &p.Segments[i]
		if !p.decodes(o, g) {
			continue
		}
		params := decodeParams(o, g)
		err := e.run(pool.combine(), unsafe.Pointer(&params), int(unsafe.Sizeof(params)),
			[3]int{heads, g.N, 1}, [3]int{pool.g.HeadDim, 1, 1}, float64(4*partialFloats(&params)), 0,
			dst.use(1, write), use{p.meta.partial, 4 * at, 2, read}, gate.use(3, read))
		if err != nil {
			return err
		}
		at += partialFloats(&params)
	}
	return nil
}

// attentionBytes is the keys and values that a row of a segment may see, once a query head.
func attentionBytes(o *device.Attention, g *device.Segment) float64 {
	return 4 * float64(g.Start+g.N) * float64(o.Dst.Cols())
}

// tileRows is the rows of a tile of attention_flash.
const tileRows = 16

// encodeTiles runs a segment by attention_flash, or plain, in pieces of rows that each fit into a command buffer: 512
// rows over 131,072 positions of the 27B are 1.6 TFLOP, which takes a small GPU half a second.
func (p *pass) encodeTiles(e *encoder, o *device.Attention, segment int) error {
	g := p.Segments[segment]
	rowFlops := attentionBytes(o, &g)
	most := max(tileRows, int(e.budget()*flopsPerByte/rowFlops)/tileRows*tileRows)
	for at := 0; at < g.N; at += most {
		if err := p.encodeTilesFrom(e, o, segment, at, min(most, g.N-at)); err != nil {
			return err
		}
	}
	return nil
}

// encodeTilesFrom runs rows [at, at+n) of a segment.
func (p *pass) encodeTilesFrom(e *encoder, o *device.Attention, segment, at, n int) error {
	g := p.Segments[segment]
	g.Row, g.Start, g.N = g.Row+at, g.Start+at, n
	pool := o.KV.(*kv)
	params := attentionParams(o, &g)
	constants := [6]uint32{pool.q8()}
	v := variant{library: "attention_plain", name: "attention_plain", constants: constants, count: 1, threads: 128}
	if name := flashNames[pool.g.HeadDim]; name != "" {
		v = p.dev.either(variant{library: "attention_flash", name: name, constants: constants, count: 1, threads: 128},
			v)
	}
	grid, group := groups(int(params.Heads), g.N, plane), plane
	if v.library == "attention_flash" {
		grid, group = [3]int{divide(g.N, tileRows), int(params.Heads), 1}, [3]int{128, 1, 1}
	}
	flops := attentionBytes(o, &g) * float64(g.N)
	return e.run(v, unsafe.Pointer(&params), int(unsafe.Sizeof(params)), grid, group, attentionBytes(o, &g), flops,
		own(o.Dst).use(1, write), own(o.Q).use(2, read), own(o.QGate).use(3, read), use{pool.keys[o.Layer], 0, 4, read},
		use{pool.values[o.Layer], 0, 5, read}, p.integers(p.meta.pages[segment], 6))
}

// makePartial makes room for an operation's partial sums.
func (p *pass) makePartial(o *device.Attention) error {
	total := 0
	for i := range p.Segments {
		if g := &p.Segments[i]; p.decodes(o, g) {
			q := decodeParams(o, g)
			total += partialFloats(&q)
		}
	}
	return p.growPartial("attention over split keys", total)
}
