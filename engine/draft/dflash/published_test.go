package dflash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"slipway/engine/weights"
)

// publishedBytes is what the test of the published shapes takes: the file in the page cache, its matrices on the CPU,
// and the head of the 27B's shape in 4 bit, twice.
const publishedBytes = 12 << 30

// The arithmetic at the published draft's shapes, on random weights of those names and shapes, against the formulas.
func TestPublishedShapesGiveTheRowsOfTheFormulas(t *testing.T) {
	if os.Getenv("SLIPWAY_SOAK") == "" {
		t.Skip(
			"1.9 billion random weights take a minute: SLIPWAY_SOAK=1 runs it; the formulas are tested at small shapes")
	}
	if free, err := availableBytes(); err != nil || free < publishedBytes {
		t.Skipf("it takes %d GiB of memory, and this machine has %d GiB free (%v)", publishedBytes>>30, free>>30, err)
	}
	w := newWorld(t, published, 1, affineHead(248320, 5120))
	f := w.begin(3000)
	w.advance(f, 4, 4)
	w.check(2e-3, []int{2}, f)
}

// availableBytes is the memory that Linux can give without swapping.
func availableBytes() (int64, error) {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(raw), "\n") {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/meminfo names no MemAvailable")
}

// affineHead is a random target's embedding and head in 4 bit.
func affineHead(vocab, hidden int) weights.Matrix {
	r := rand.New(rand.NewPCG(5, 7))
	const group = 64
	m := weights.Matrix{Name: "head", Out: vocab, In: hidden, Bits: 4, Group: group, ScaleDType: weights.BF16,
		Data: make([]byte, vocab*hidden/2), Scales: make([]byte, 2*vocab*hidden/group),
		Biases: make([]byte, 2*vocab*hidden/group)}
	for i := 0; i+8 <= len(m.Data); i += 8 {
		for k, word := 0, r.Uint64(); k < 8; k, word = k+1, word>>8 {
			m.Data[i+k] = byte(word)
		}
	}
	scale := weights.BF16Of(0.004)
	for i := 0; i < len(m.Scales); i += 2 {
		bias := weights.BF16Of(-0.03 + 0.002*r.Float32())
		m.Scales[i], m.Scales[i+1] = byte(scale), byte(scale>>8)
		m.Biases[i], m.Biases[i+1] = byte(bias), byte(bias>>8)
	}
	return m
}
