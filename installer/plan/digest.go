package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// digest is the SHA-256 of the canonical JSON of decisions and actions.
func digest(p Plan) string {
	p.Digest = ""
	data, err := Canonical(p)
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
