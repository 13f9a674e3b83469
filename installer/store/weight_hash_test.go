package store

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"hash"
	"testing"
)

// A download that one implementation began, the other one continues: values and saved states are the same.
func TestWeightHashHasTheValuesAndSavedStatesOfTheStandardLibrary(t *testing.T) {
	data := make([]byte, 300_000)
	for i := range data {
		data[i] = byte(i*i>>3 + i)
	}
	for _, n := range []int{0, 1, 55, 56, 63, 64, 65, 127, 128, 4096, 256 << 10, len(data)} {
		want := sha256.Sum256(data[:n])
		h := NewWeightHash()
		h.Write(data[:n])
		if !bytes.Equal(h.Sum(nil), want[:]) {
			t.Fatalf("%d bytes have another hash", n)
		}
		whole := sha256.Sum256(data)
		for name, pair := range map[string][2]hash.Hash{"saved by ours": {NewWeightHash(), sha256.New()},
			"saved by the library's": {sha256.New(), NewWeightHash()}, "saved and restored by ours": {
				NewWeightHash(), NewWeightHash()}} {
			pair[0].Write(data[:n])
			state, err := pair[0].(encoding.BinaryMarshaler).MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			if err := pair[1].(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
				t.Fatalf("%s at %d: %v", name, n, err)
			}
			pair[1].Write(data[n:])
			if !bytes.Equal(pair[1].Sum(nil), whole[:]) {
				t.Errorf("%s at %d: another hash", name, n)
			}
		}
	}
}
