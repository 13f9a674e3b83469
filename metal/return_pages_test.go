//go:build unix

package metal_test

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"slipway/engine/device"
	"slipway/engine/model"
	"slipway/engine/pass"
	"slipway/engine/weights"
	"slipway/metal"
	"slipway/metal/fake"
	"slipway/metal/selftest"
)

// residentBytes is the memory that this process has now; 0 where the system does not tell.
func residentBytes(t *testing.T) int {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, err := strconv.Atoi(strings.Fields(string(raw))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

func TestReturnedPagesGiveTheirMemoryBack(t *testing.T) {
	for _, format := range []device.KVFormat{device.KVNative, device.KVQ8} {
		d := open(t, fake.Configuration{Seed: 2}, metal.Options{})
		const pages, dim = 100, 64
		pool, err := d.KV(device.KVGeometry{Layers: 2, Heads: 3, HeadDim: dim, Pages: pages, Format: format})
		if err != nil {
			t.Fatal(err)
		}
		kv := pool.(device.PageReturn)
		n := kv.PageBytes(device.PageTokens)
		content := func(page int32) []byte {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(1 + i*7 + int(page))
			}
			return b
		}
		for page := range int32(pages) {
			kv.WritePage(page, content(page), device.PageTokens)
		}
		kept := map[int32]bool{0: true, 17: true, 18: true, 60: true, 99: true}
		var gone []int32
		for page := int32(pages - 1); page >= 0; page-- {
			if !kept[page] {
				gone = append(gone, page)
			}
		}
		runtime.GC()
		before := residentBytes(t)
		if err := kv.ReturnPages(gone); err != nil {
			t.Fatal(err)
		}
		if after := residentBytes(t); before > 0 && before-after < len(gone)*n*9/10 {
			t.Errorf("format %d: %d bytes resident before, %d after %d were returned", format, before, after,
				len(gone)*n)
		}
		back := make([]byte, n)
		for page := range kept {
			if kv.ReadPage(back, page, device.PageTokens); !bytes.Equal(back, content(page)) {
				t.Errorf("format %d: page %d, which was kept, changed", format, page)
			}
		}
		if kv.ReadPage(back, 40, device.PageTokens); !bytes.Equal(back, make([]byte, n)) {
			t.Errorf("format %d: a page in the middle of those returned is not zero", format)
		}
	}
}

// Pages that were returned can be written and attended to like new ones, beside pages that were kept.
func TestReturnedPagesWorkLikeNewOnes(t *testing.T) {
	run := func(give bool) [][]float32 {
		w := newWorld(t, open(t, fake.Configuration{Seed: 2}, metal.Options{}), 1)
		kv, err := w.Device.KV(device.KVGeometry{Layers: 1, Heads: 1, HeadDim: 64, Pages: 3})
		if err != nil {
			t.Fatal(err)
		}
		qGate, k, v, table := w.Buffer(20, 256), w.Buffer(20, 64), w.Buffer(20, 64), w.Output(20, 8)
		q, dst, norm := w.Output(20, 128), w.Output(20, 128), w.Vector(64)
		attend := func(page int32, start, n int) [][]float32 {
			w.Run([]device.Segment{{N: n, Start: start, Pages: []int32{page}}}, func(p device.Pass) {
				p.Rotation(table, []float64{1, 0.1, 0.01, 0.001})
				p.AttentionInput(device.AttentionInput{Q: q, QGate: qGate, K: k, V: v, QNorm: norm, KNorm: norm,
					Rotation: table, KV: kv, Eps: 1e-6})
				p.Attention(device.Attention{Dst: dst, Q: q, QGate: qGate, KV: kv})
			})
			return selftest.Rows(dst)[:n]
		}
		attend(0, 0, 20)
		attend(1, 0, 20)
		if give {
			if err := kv.(device.PageReturn).ReturnPages([]int32{1, 2}); err != nil {
				t.Fatal(err)
			}
		}
		return append(attend(0, 20, 3), attend(1, 0, 20)...)
	}
	if what := differ(run(true), run(false), 0); what != "" {
		t.Error(what)
	}
}

// A buffer that Metal does not wrap again is an error of each later pass: a message to nil would do nothing, silently.
func TestPagesThatCannotBeMappedAgainAreAnError(t *testing.T) {
	w := newWorld(t, open(t, fake.Configuration{}, metal.Options{}), 1)
	kv, err := w.Device.KV(device.KVGeometry{Layers: 1, Heads: 1, HeadDim: 64, Pages: 3})
	if err != nil {
		t.Fatal(err)
	}
	fake.Configure(fake.Configuration{MaxBufferBytes: 1})
	defer fake.Configure(fake.Configuration{})
	const says = "could not be mapped again"
	if err := kv.(device.PageReturn).ReturnPages([]int32{1}); err == nil || !strings.Contains(err.Error(), says) {
		t.Fatalf("%v, wanted an error", err)
	}
	fake.Configure(fake.Configuration{})
	q, gate, dst := w.Buffer(1, 64), w.Buffer(1, 128), w.Output(1, 64)
	err = w.Pass([]device.Segment{{N: 1, Pages: []int32{0}}}, func(p device.Pass) {
		p.Attention(device.Attention{Dst: dst, Q: q, QGate: gate, KV: kv})
	})
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%v, wanted an error", err)
	}
}

// A conversation continues with the same bits after the pages of another, which has ended, were returned.
func TestConversationKeepsItsPagesWhenOthersAreReturned(t *testing.T) {
	ckpt, err := weights.Open(pocket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ckpt.Close() })
	n, err := model.Load(open(t, fake.Configuration{Threads: 2}, metal.Options{}), ckpt, model.Options{
		WindowTokens: 1024, MaxSequences: 2, ChunkTokens: 32})
	if err != nil {
		t.Fatal(err)
	}
	tokens := make([]int32, 30)
	for i := range tokens {
		tokens[i] = int32(100 + 7*i)
	}
	answer := func(give bool) []float32 {
		var both [2]*model.Sequence
		for i := range both {
			if both[i], err = n.NewSequence(); err != nil {
				t.Fatal(err)
			}
			defer both[i].Close()
			if _, err := n.Forward(t.Context(), []pass.Segment{{Seq: both[i], Tokens: tokens[:20]}}); err != nil {
				t.Fatal(err)
			}
		}
		both[0].Close()
		if give {
			if err := n.ReturnPages(); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := n.Forward(t.Context(), []pass.Segment{
			{Seq: both[1], Tokens: tokens[20:], Logits: pass.LogitsLast}})
		if err != nil {
			t.Fatal(err)
		}
		return append([]float32(nil), rows[0][0]...)
	}
	if what := differ([][]float32{answer(true)}, [][]float32{answer(false)}, 0); what != "" {
		t.Error(what)
	}
}
