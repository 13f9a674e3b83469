//go:build unix

package metal_test

import (
	"bytes"
	"testing"

	"slipway/engine/device"
	"slipway/engine/device/devicetest"
	"slipway/metal/fake"
)

// Share: the operands of prefill's products, and keys and values, are of 11 bits.
func TestContract(t *testing.T) {
	for kind, d := range metals(t, fake.Configuration{Seed: 6, Threads: 2, DelayMicros: 100}) {
		t.Run(kind, func(t *testing.T) { devicetest.Run(t, d, devicetest.Options{Share: 2e-3}) })
	}
}

func TestPagesAndStatesSurviveARoundTrip(t *testing.T) {
	d := metals(t, fake.Configuration{})["fast"]
	pool, err := d.KV(device.KVGeometry{Layers: 2, Heads: 3, HeadDim: 20, Pages: 4})
	if err != nil {
		t.Fatal(err)
	}
	kv := pool
	for _, tokens := range []int{1, 100, device.PageTokens} {
		page := make([]byte, kv.PageBytes(tokens))
		for i := range page {
			page[i] = byte(i*7 + tokens)
		}
		kv.WritePage(2, page, tokens)
		kv.CopyPage(1, 2)
		back := make([]byte, len(page))
		kv.ReadPage(back, 1, tokens)
		if !bytes.Equal(back, page) {
			t.Errorf("%d tokens differ after the round trip", tokens)
		}
		if tokens > 1 {
			kv.ReadPage(back[:kv.PageBytes(1)], 2, 1)
			a, b := make([]float32, 60), make([]float32, 60)
			kv.Read(a, b, 1, 2, 0)
			kv.WritePage(3, back[:kv.PageBytes(1)], 1)
			c, e := make([]float32, 60), make([]float32, 60)
			kv.Read(c, e, 1, 3, 0)
			if differ([][]float32{c, e}, [][]float32{a, b}, 0) != "" {
				t.Errorf("the first of %d tokens alone differs after the round trip", tokens)
			}
		}
	}
	w := newWorld(t, d, 1)
	segments, n := w.SegmentsOf(geometry, 3, 1)
	x, dst, weight := w.Buffer(n, geometry.ConvChannels), w.Output(n, geometry.ConvChannels),
		w.Vector(4*geometry.ConvChannels)
	if err := w.Pass(segments, func(p device.Pass) {
		p.Conv(device.Conv{Dst: dst, X: x, Weight: weight})
	}); err != nil {
		t.Fatal(err)
	}
	a, b := segments[0].State, segments[1].State
	all, back := make([]byte, a.Bytes()), make([]byte, a.Bytes())
	a.ReadAll(all)
	b.WriteAll(all)
	b.ReadAll(back)
	if !bytes.Equal(all, back) || bytes.Equal(all, make([]byte, len(all))) {
		t.Error("a state differs after the round trip")
	}
}

var geometry = device.StateGeometry{Layers: 2, KeyHeads: 1, ValueHeads: 2, KeyDim: 32, ValueDim: 8, ConvChannels: 80,
	ConvTaps: 4}
