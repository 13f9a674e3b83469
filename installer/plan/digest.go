package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// DigestOf is the SHA-256 of the canonical JSON of what a consent covers: the decisions, and of each action what it is,
// needs and touches. Sentences and titles are not in it: they may be worded better without making another plan.
func DigestOf(p Plan) string {
	covered := struct {
		SchemaVersion int             `json:"schema_version"`
		Digest        int             `json:"digest_version"`
		Decisions     Decisions       `json:"decisions"`
		Actions       []coveredAction `json:"actions"`
	}{p.SchemaVersion, 2, withoutWords(p.Decisions), nil}
	for _, a := range p.Actions {
		a.Touches.Processes = nil
		covered.Actions = append(covered.Actions, coveredAction{a.ID, a.Kind, a.Consent, a.Touches})
	}
	return sum(covered)
}

type coveredAction struct {
	ID      string  `json:"id"`
	Kind    Kind    `json:"kind"`
	Consent []Class `json:"consent"`
	Touches Touches `json:"touches"`
}

// withoutWords leaves out what is only there to be read.
func withoutWords(d Decisions) Decisions {
	d.Model.Title, d.Profile.Sentence = "", ""
	if d.Draft != nil {
		draft := *d.Draft
		draft.Title = ""
		d.Draft = &draft
	}
	d.Stops = slices.Clone(d.Stops)
	for i := range d.Stops {
		d.Stops[i].Title, d.Stops[i].Ports = "", nil
	}
	return d
}

// wordedDigest is the digest of versions before 2: it covered every word of the plan.
func wordedDigest(p Plan) string {
	p.Digest = ""
	return sum(p)
}

func sum(v any) string {
	data, err := Canonical(v)
	if err != nil {
		panic("plan: a plan that cannot be written: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Canonical writes a value as JSON with keys sorted, no spaces and no HTML escapes: RFC 8785 for the values that plans
// hold (strings, booleans, integers below 2^53, arrays, objects). Numbers keep the form in which encoding/json writes
// integers; floats are refused because they have no canonical form here.
func Canonical(v any) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(plain))
	dec.UseNumber()
	var generic any
	if err := dec.Decode(&generic); err != nil {
		return nil, err
	}
	if err := refuseFloats(generic); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(generic); err != nil { // encoding/json sorts the keys of maps
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func refuseFloats(v any) error {
	switch v := v.(type) {
	case json.Number:
		if _, err := v.Int64(); err != nil {
			return fmt.Errorf("plan: %s is not an integer", v)
		}
	case []any:
		for _, e := range v {
			if err := refuseFloats(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, e := range v {
			if err := refuseFloats(e); err != nil {
				return err
			}
		}
	}
	return nil
}
