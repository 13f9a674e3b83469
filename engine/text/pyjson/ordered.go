package pyjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Object is a JSON object whose members keep their order. A name that comes twice keeps its first place and its
// last value, as in Python.
type Object struct {
	Keys   []string
	Values map[string]any
}

func (o *Object) set(key string, value any) {
	if _, known := o.Values[key]; !known {
		o.Keys = append(o.Keys, key)
	}
	o.Values[key] = value
}

var errNotJSON = errors.New("not one JSON value")

// Decode reads one JSON value: nil, bool, json.Number, string, []any or *Object. Nesting is bounded by the JSON
// reader (10,000 levels), so that what walks the value needs no bound of its own.
func Decode(raw []byte) (any, error) {
	if !json.Valid(raw) {
		return nil, errNotJSON
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := next(d)
	if err != nil {
		return nil, errNotJSON
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotJSON
	}
	return v, nil
}

func next(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := next(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		o := &Object{Values: map[string]any{}}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := next(d)
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

// EachString visits every string of a decoded value, names of members included.
func EachString(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case []any:
		for _, item := range v {
			EachString(item, visit)
		}
	case *Object:
		for _, key := range v.Keys {
			visit(key)
			EachString(v.Values[key], visit)
		}
	}
}
