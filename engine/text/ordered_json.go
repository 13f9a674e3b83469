package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// object is a JSON object whose members keep their order. A name that comes twice keeps its first place and its last value,
// as in Python.
type object struct {
	keys   []string
	values map[string]any
}

func (o *object) set(key string, value any) {
	if _, known := o.values[key]; !known {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

var errNotJSON = errors.New("not one JSON value")

// decodeOrdered reads one JSON value: nil, bool, json.Number, string, []any or *object. Nesting is bounded by the JSON
// reader (10,000 levels), so that what walks the value needs no bound of its own.
func decodeOrdered(raw []byte) (any, error) {
	if !json.Valid(raw) {
		return nil, errNotJSON
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := decodeNext(d)
	if err != nil {
		return nil, errNotJSON
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotJSON
	}
	return v, nil
}

func decodeNext(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeNext(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		o := &object{values: map[string]any{}}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeNext(d)
			if err != nil {
				return nil, err
			}
			o.set(key.(string), v)
		}
		_, err = d.Token()
		return o, err
	}
	return token, nil
}

// eachString visits every string of a decoded value, names of members included.
func eachString(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case []any:
		for _, item := range v {
			eachString(item, visit)
		}
	case *object:
		for _, key := range v.keys {
			visit(key)
			eachString(v.values[key], visit)
		}
	}
}
