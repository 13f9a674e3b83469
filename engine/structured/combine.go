package structured

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"slipway/engine/text/pyjson"
)

// combine writes a schema with $ref beside other keywords, allOf, anyOf or oneOf as a list of schemas of which a value
// must fulfil one: rest is put into each of them.
func (c *compiler) combine(s *pyjson.Object, keyword string, rest *pyjson.Object, path string) ([]any, error) {
	if keyword == "$ref" {
		target, _, err := c.resolve(s.Values["$ref"], path)
		if err != nil {
			return nil, err
		}
		both, err := merge(target, rest, path)
		return []any{both}, err
	}
	list, ok := s.Values[keyword].([]any)
	if !ok || len(list) == 0 {
		return nil, refuse(path, "has an %s that is no list of schemas", keyword)
	}
	if keyword == "allOf" {
		all := any(rest)
		for _, one := range list {
			one, err := c.plain(one, path)
			if err != nil {
				return nil, err
			}
			if all, err = merge(all, one, path); err != nil {
				return nil, err
			}
		}
		return []any{all}, nil
	}
	if keyword == "oneOf" {
		if err := c.exclusive(list, path); err != nil {
			return nil, err
		}
	}
	if len(rest.Keys) == 0 {
		return list, nil
	}
	var options []any
	for _, one := range list {
		one, err := c.plain(one, path)
		if err != nil {
			return nil, err
		}
		both, err := merge(rest, one, path)
		if err != nil {
			return nil, err
		}
		options = append(options, both)
	}
	return options, nil
}

// plain gives the schema that a lone $ref names, and every other as it is.
func (c *compiler) plain(s any, path string) (any, error) {
	for range mostDepth {
		o, ok := s.(*pyjson.Object)
		if !ok {
			return s, nil
		}
		if combined, rest := c.split(o); combined != "$ref" || len(rest.Keys) > 0 {
			return s, nil
		}
		target, _, err := c.resolve(o.Values["$ref"], path)
		if err != nil {
			return nil, err
		}
		s = target
	}
	return nil, refuse(path, "has a $ref that leads to itself")
}

// merge writes two schemas as one that allows what both allow. Where that cannot be written, it is refused.
func merge(a, b any, path string) (any, error) {
	if a == true || b == false {
		return b, nil
	}
	if b == true || a == false {
		return a, nil
	}
	x, ok := a.(*pyjson.Object)
	y, ok2 := b.(*pyjson.Object)
	if !ok || !ok2 {
		return nil, refuse(path, "combines what is no schema")
	}
	if closesOver(x, y) || closesOver(y, x) {
		return nil, refuse(path, "combines an object without additional properties with other properties, which "+
			"is not supported")
	}
	both := without(x, annotations...)
	for _, key := range y.Keys {
		if slices.Contains(annotations, key) {
			continue
		}
		there, given := both.Values[key]
		if !given {
			both.Keys = append(both.Keys, key)
			both.Values[key] = y.Values[key]
			continue
		}
		v, err := mergeKeyword(key, there, y.Values[key], path)
		if err != nil {
			return nil, err
		}
		both.Values[key] = v
	}
	return both, nil
}

// closesOver reports whether a bounds what is not listed in it, and b lists something else.
func closesOver(a, b *pyjson.Object) bool {
	extra, given := a.Values["additionalProperties"]
	if !given || extra == true {
		return false
	}
	mine, _ := a.Values["properties"].(*pyjson.Object)
	other, ok := b.Values["properties"].(*pyjson.Object)
	if !ok {
		return false
	}
	for _, name := range other.Keys {
		if mine == nil {
			return true
		}
		if _, listed := mine.Values[name]; !listed {
			return true
		}
	}
	return false
}

// mergeKeyword gives the value of a keyword that two schemas have.
func mergeKeyword(key string, a, b any, path string) (any, error) {
	if sameValue(a, b) && key != "allOf" && key != "anyOf" && key != "oneOf" {
		return a, nil
	}
	switch key {
	case "required":
		x, _ := a.([]any)
		y, _ := b.([]any)
		return append(slices.Clone(x), y...), nil
	case "properties":
		x, ok := a.(*pyjson.Object)
		y, ok2 := b.(*pyjson.Object)
		if !ok || !ok2 {
			break
		}
		both := without(x)
		for _, name := range y.Keys {
			there, given := both.Values[name]
			if !given {
				both.Keys = append(both.Keys, name)
				both.Values[name] = y.Values[name]
				continue
			}
			v, err := merge(there, y.Values[name], path)
			if err != nil {
				return nil, err
			}
			both.Values[name] = v
		}
		return both, nil
	case "items", "additionalProperties":
		return merge(a, b, path)
	case "minimum", "exclusiveMinimum", "minLength", "minItems":
		return further(a, b, 1, path)
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems":
		return further(a, b, -1, path)
	case "type":
		return commonTypes(a, b, path)
	case "enum":
		x, ok := a.([]any)
		y, ok2 := b.([]any)
		if ok && ok2 {
			return slices.DeleteFunc(slices.Clone(x), func(v any) bool {
				return !slices.ContainsFunc(y, func(w any) bool { return sameValue(v, w) })
			}), nil
		}
	}
	return nil, refuse(path, "combines two schemas that both have %q, which is not supported", key)
}

// further gives the larger of two numbers for sign 1, the smaller for -1.
func further(a, b any, sign int, path string) (any, error) {
	x, ok := a.(json.Number)
	y, ok2 := b.(json.Number)
	if ok && ok2 && len(x) <= 64 && len(y) <= 64 && exponentFits(string(x)) && exponentFits(string(y)) {
		p, ok := new(big.Rat).SetString(string(x))
		q, ok2 := new(big.Rat).SetString(string(y))
		if ok && ok2 {
			if p.Cmp(q)*sign > 0 {
				return a, nil
			}
			return b, nil
		}
	}
	return nil, refuse(path, "has a bound that is no number")
}

// commonTypes gives the types that two values of type have in common.
func commonTypes(a, b any, path string) (any, error) {
	x, err := typesOf(&pyjson.Object{Values: map[string]any{"type": a}}, path)
	if err != nil {
		return nil, err
	}
	y, err := typesOf(&pyjson.Object{Values: map[string]any{"type": b}}, path)
	if err != nil {
		return nil, err
	}
	common := []any{}
	for _, name := range []string{"null", "boolean", "object", "array", "number", "integer", "string"} {
		in := func(types map[string]bool) bool { return types[name] || name == "integer" && types["number"] }
		if in(x) && in(y) {
			common = append(common, name)
		}
	}
	return common, nil
}

// exclusive refuses alternatives of oneOf that a value might fulfil together: they must differ by type, or by the
// constants of a member that all require.
func (c *compiler) exclusive(list []any, path string) error {
	for i := range list {
		for j := range i {
			a, err := c.plain(list[i], path)
			if err != nil {
				return err
			}
			b, err := c.plain(list[j], path)
			if err != nil {
				return err
			}
			x, ok := a.(*pyjson.Object)
			y, ok2 := b.(*pyjson.Object)
			if !ok || !ok2 || !c.disjoint(x, y, path, 0) {
				return refuse(path, "has a oneOf whose alternatives %s and %s may both hold; use anyOf",
					strconv.Itoa(j), strconv.Itoa(i))
			}
		}
	}
	return nil
}

// disjoint reports whether it is certain that no value fulfils both schemas.
func (c *compiler) disjoint(a, b *pyjson.Object, path string, depth int) bool {
	x, err := typesOf(a, path)
	y, err2 := typesOf(b, path)
	if err != nil || err2 != nil || depth > mostDepth {
		return false
	}
	common := []string{}
	for name := range x {
		if y[name] || name == "integer" && y["number"] || name == "number" && y["integer"] {
			common = append(common, name)
		}
	}
	if len(common) == 0 {
		return true
	}
	if p, q := constants(a), constants(b); p != nil && q != nil {
		return !slices.ContainsFunc(p, func(v any) bool {
			return slices.ContainsFunc(q, func(w any) bool { return sameValue(v, w) })
		})
	}
	if len(common) > 1 || common[0] != "object" {
		return false
	}
	mine, _ := a.Values["properties"].(*pyjson.Object)
	other, _ := b.Values["properties"].(*pyjson.Object)
	if mine == nil || other == nil {
		return false
	}
	for _, name := range mine.Keys {
		if !requires(a, name) || !requires(b, name) {
			continue
		}
		v, err := c.plain(mine.Values[name], path)
		w, err2 := c.plain(other.Values[name], path)
		p, ok := v.(*pyjson.Object)
		q, ok2 := w.(*pyjson.Object)
		if err == nil && err2 == nil && ok && ok2 && c.disjoint(p, q, path, depth+1) {
			return true
		}
	}
	return false
}

func requires(s *pyjson.Object, name string) bool {
	list, _ := s.Values["required"].([]any)
	return slices.Contains(list, any(name))
}

// constants are the values of const or enum; nil: it has neither.
func constants(s *pyjson.Object) []any {
	if v, given := s.Values["const"]; given {
		return []any{v}
	}
	list, _ := s.Values["enum"].([]any)
	return list
}

// sameValue reports whether two JSON values are equal as JSON Schema means it: numbers by value, members in any order.
func sameValue(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		if !ok || len(x) > 64 || len(y) > 64 || !exponentFits(string(x)) || !exponentFits(string(y)) {
			return ok && x == y
		}
		p, ok := new(big.Rat).SetString(string(x))
		q, ok2 := new(big.Rat).SetString(string(y))
		return ok && ok2 && p.Cmp(q) == 0
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, sameValue)
	case *pyjson.Object:
		y, ok := b.(*pyjson.Object)
		if !ok || len(x.Keys) != len(y.Keys) {
			return false
		}
		for _, key := range x.Keys {
			v, there := y.Values[key]
			if !there || !sameValue(x.Values[key], v) {
				return false
			}
		}
		return true
	}
	return a == b
}

// write gives the JSON of a value as a reply holds it: no blanks, members in their order.
func write(v any) string {
	var out strings.Builder
	writeTo(&out, v, nil)
	return out.String()
}

// writeInOrder is write with the members that a schema lists before others, in its order.
func writeInOrder(v any, schema *pyjson.Object) string {
	var out strings.Builder
	writeTo(&out, v, schema)
	return out.String()
}

func writeTo(out *strings.Builder, v any, schema *pyjson.Object) {
	switch v := v.(type) {
	case nil:
		out.WriteString("null")
	case bool:
		out.WriteString(strconv.FormatBool(v))
	case json.Number:
		out.WriteString(string(v))
	case string:
		pyjson.WriteText(out, v)
	case []any:
		out.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			writeTo(out, item, sub(schema, "items"))
		}
		out.WriteByte(']')
	case *pyjson.Object:
		members := sub(schema, "properties")
		names := slices.Clone(v.Keys)
		if members != nil {
			slices.SortStableFunc(names, func(a, b string) int { return place(members, a) - place(members, b) })
		}
		out.WriteByte('{')
		for i, name := range names {
			if i > 0 {
				out.WriteByte(',')
			}
			pyjson.WriteText(out, name)
			out.WriteByte(':')
			writeTo(out, v.Values[name], sub(members, name))
		}
		out.WriteByte('}')
	}
}

func sub(schema *pyjson.Object, key string) *pyjson.Object {
	if schema == nil {
		return nil
	}
	o, _ := schema.Values[key].(*pyjson.Object)
	return o
}

func place(members *pyjson.Object, name string) int {
	if i := slices.Index(members.Keys, name); i >= 0 {
		return i
	}
	return len(members.Keys)
}
