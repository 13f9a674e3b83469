package memory

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// Key says under what a state was computed. Only a state of an equal key continues a prompt.
type Key struct {
	Model        string `json:"model"`
	Revision     string `json:"revision"` // of the weights; where none was given, a digest of what identifies them
	Quantization string `json:"quantization"`
	KVFormat     string `json:"kv_format"`
	Policy       Policy `json:"policy"`
	Device       string `json:"device"`
	Numerics     string `json:"numerics"`
}

// Policy is the prefill policy with its numbers, in tokens. Two policies of one name and other numbers are two
// policies. Epoch rises when the same numbers come to mean something else.
type Policy struct {
	Name             string `json:"name"` // "exact", "sink-window"
	Sink             int    `json:"sink"`
	Window           int    `json:"window"`
	ColdTail         int    `json:"cold_tail"`
	ContinuationTail int    `json:"continuation_tail"`
	Epoch            int    `json:"epoch"`
}

// Digest identifies the key in files.
func (k Key) Digest() [32]byte {
	text, err := json.Marshal(k) // a struct of strings and numbers: its members come in order
	if err != nil {
		panic("memory: a key that has no JSON")
	}
	return sha256.Sum256(text)
}

// Differences names the parts in which two keys differ, with both values: "KV format bf16, not f32".
func (k Key) Differences(other Key) []string {
	var parts []string
	for _, p := range []struct {
		name      string
		mine, its any
	}{
		{"model", k.Model, other.Model}, {"revision", k.Revision, other.Revision},
		{"quantisation", k.Quantization, other.Quantization},
		{"KV format", k.KVFormat, other.KVFormat}, {"prefill policy", k.Policy, other.Policy},
		{"device", k.Device, other.Device}, {"numerics", k.Numerics, other.Numerics},
	} {
		if p.mine != p.its {
			parts = append(parts, fmt.Sprintf("%s %v, not %v", p.name, p.its, p.mine))
		}
	}
	return parts
}

// Section is a part of a point that only some runs can use: a draft's own state. Its key is its own.
type Section struct {
	Name string // "mtp", "ring"
	Key  string // what must be equal for its use: the draft's revision, taps, format
}

// SectionState says whether a point's section can be used.
type SectionState int

const (
	SectionMissing SectionState = iota // the point serves; the draft starts with what it has
	SectionForeign                     // there is one, under another key, which cannot be used
	SectionGood
)

// FindSection looks for the wanted section among a point's.
func FindSection(sections []Section, wanted Section) SectionState {
	state := SectionMissing
	for _, s := range sections {
		switch {
		case s == wanted:
			return SectionGood
		case s.Name == wanted.Name:
			state = SectionForeign
		}
	}
	return state
}

// MTPShared is how many slots of the MTP head's KV a prefix of tokens shares with every continuation. Slot S pairs the
// hidden row of S with token S+1, so the last slot depends on what follows: a point keeps the hidden row of its last
// position, and the slot is completed with the token that follows.
func MTPShared(tokens int) int { return max(0, tokens-1) }
