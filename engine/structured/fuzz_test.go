package structured

import (
	"errors"
	"testing"
)

// Whatever a client calls a schema: no panic, an *Error or a grammar, and from the first byte on a way to go on.
func FuzzCompile(f *testing.F) {
	v := smallVocabulary(f)
	for _, schema := range schemas {
		f.Add([]byte(schema))
	}
	f.Add([]byte(`{"allOf":[{"$ref":"#"},{"type":["string","null"],"maxLength":1e3}],"oneOf":[{"const":1},{"const":2}]}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		g, err := Compile(v, schema)
		if refused := (*Error)(nil); err != nil {
			if !errors.As(err, &refused) {
				t.Errorf("%v is no *Error", err)
			}
			return
		}
		mask := g.Follow([]int32{0}, nil).Mask(nil)
		for _, word := range mask {
			if word != 0 {
				return
			}
		}
		t.Error("no token may come")
	})
}
