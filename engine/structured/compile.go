package structured

import (
	"encoding/json"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"slipway/engine/text/pyjson"
)

// Bounds of a schema. Beyond them it is refused.
const (
	mostSchemaBytes = 256 << 10
	mostNodes       = 4000
	mostDepth       = 64
	mostLiterals    = 2000
	mostItems       = 100_000
)

// AnyObject is the schema of any JSON object.
var AnyObject = json.RawMessage(`{"type":"object"}`)

// Compile reads a JSON Schema, the order of members kept. Errors are *Error. It takes up to about a second for the
// largest schemas that it takes.
func Compile(v *Vocabulary, schema json.RawMessage) (*Grammar, error) {
	if len(schema) > mostSchemaBytes {
		return nil, refuse("", "has %d bytes; at most %d are taken", len(schema), mostSchemaBytes)
	}
	document, err := pyjson.Decode(schema)
	if err != nil {
		return nil, refuse("", "is not JSON")
	}
	c := &compiler{document: document, nodes: map[*pyjson.Object]*node{}, paths: map[*texts]string{}}
	root, err := c.node(document, "", 0)
	if err != nil {
		return nil, err
	}
	finish(c.all)
	if root.least > mostNesting {
		return nil, refuse("", "allows no value that could be written")
	}
	g := &Grammar{root: root, vocabulary: v, patterns: map[*texts][]patternMasks{}}
	return g, g.prepare(c.all, c.paths)
}

// compiler makes nodes. A schema object that is referred to is made once, so that recursion ends.
type compiler struct {
	document any
	nodes    map[*pyjson.Object]*node
	any      *node // of true
	all      []*node
	literals int
	paths    map[*texts]string
}

// annotations change nothing about which values are valid.
var annotations = []string{"$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "title", "description",
	"default", "examples", "deprecated", "readOnly", "writeOnly", "discriminator", "contentMediaType",
	"contentEncoding", "markdownDescription", "errorMessage"}

// validating are the keywords that are taken.
var validating = []string{"type", "enum", "const", "properties", "required", "additionalProperties", "items",
	"minItems", "maxItems", "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum",
	"exclusiveMaximum", "multipleOf", "anyOf", "allOf", "oneOf", "$ref", "uniqueItems", "nullable"}

func (c *compiler) add(n *node) (*node, error) {
	c.all = append(c.all, n)
	if len(c.all) > mostNodes {
		return nil, refuse("", "has more than %d parts", mostNodes)
	}
	return n, nil
}

// node makes the node of a schema.
func (c *compiler) node(schema any, path string, depth int) (*node, error) {
	if depth > mostDepth {
		return nil, refuse(path, "is more than %d levels deep", mostDepth)
	}
	switch s := schema.(type) {
	case bool:
		if s && c.any != nil {
			return c.any, nil
		}
		n, err := c.add(&node{})
		if err != nil || !s {
			return n, err
		}
		c.any = n
		return n, c.fill(n, &pyjson.Object{}, path, depth)
	case *pyjson.Object:
		if n := c.nodes[s]; n != nil {
			return n, nil
		}
		n, err := c.add(&node{})
		if err != nil {
			return nil, err
		}
		c.nodes[s] = n
		return n, c.fill(n, s, path, depth)
	}
	return nil, refuse(path, "is neither an object nor true or false")
}

// fill reads a schema into its node.
func (c *compiler) fill(n *node, s *pyjson.Object, path string, depth int) error {
	for _, key := range s.Keys {
		if !slices.Contains(annotations, key) && !slices.Contains(validating, key) {
			return refuse(path, "uses %.64q, which is not supported", key)
		}
	}
	combined, rest := c.split(s)
	switch {
	case combined == "":
		return c.leaves(n, rest, path, depth)
	case combined == "$ref" && len(rest.Keys) == 0:
		return c.reference(n, s.Values["$ref"], path, depth)
	}
	options, err := c.combine(s, combined, rest, path)
	if err != nil {
		return err
	}
	for i, option := range options {
		made, err := c.node(option, path+"/"+combined+"/"+strconv.Itoa(i), depth+1)
		if err != nil {
			return err
		}
		n.options = append(n.options, made)
	}
	return nil
}

// split gives the first keyword that combines schemas, and the schema without it and without annotations.
func (c *compiler) split(s *pyjson.Object) (combined string, rest *pyjson.Object) {
	rest = &pyjson.Object{Values: map[string]any{}}
	for _, key := range s.Keys {
		switch {
		case slices.Contains(annotations, key):
		case combined == "" && slices.Contains([]string{"$ref", "allOf", "anyOf", "oneOf"}, key):
			combined = key
		default:
			rest.Keys = append(rest.Keys, key)
			rest.Values[key] = s.Values[key]
		}
	}
	return combined, rest
}

// reference makes n the schema that a reference names.
func (c *compiler) reference(n *node, ref any, path string, depth int) error {
	target, at, err := c.resolve(ref, path)
	if err != nil {
		return err
	}
	made, err := c.node(target, at, depth+1)
	if err != nil {
		return err
	}
	n.options = append(n.options, made)
	return nil
}

// resolve follows a JSON pointer within the document.
func (c *compiler) resolve(ref any, path string) (any, string, error) {
	text, ok := ref.(string)
	if !ok || text != "#" && !strings.HasPrefix(text, "#/") {
		return nil, "", refuse(path, "has a $ref that does not point into the schema itself (%.100q)", text)
	}
	at := c.document
	for _, part := range strings.Split(text, "/")[1:] {
		if decoded, err := url.PathUnescape(part); err == nil {
			part = decoded
		}
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch inner := at.(type) {
		case *pyjson.Object:
			at, ok = inner.Values[part]
		case []any:
			i, err := strconv.Atoi(part)
			if ok = err == nil && i >= 0 && i < len(inner); ok {
				at = inner[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, "", refuse(path, "has a $ref to %.100q, which is not there", text)
		}
	}
	return at, strings.TrimPrefix(text, "#"), nil
}

// types are the kinds that a schema names; all where it names none.
func typesOf(s *pyjson.Object, path string) (map[string]bool, error) {
	known := []string{"null", "boolean", "object", "array", "number", "integer", "string"}
	types := map[string]bool{}
	add := func(v any) error {
		name, ok := v.(string)
		if !ok || !slices.Contains(known, name) {
			return refuse(path, "has a type that JSON Schema does not know")
		}
		types[name] = true
		return nil
	}
	switch t := s.Values["type"].(type) {
	case nil:
		if _, given := s.Values["type"]; given {
			return nil, refuse(path, "has a type that JSON Schema does not know")
		}
		for _, name := range known {
			types[name] = true
		}
	case []any:
		for _, one := range t {
			if err := add(one); err != nil {
				return nil, err
			}
		}
	default:
		if err := add(t); err != nil {
			return nil, err
		}
	}
	if s.Values["nullable"] == true {
		types["null"] = true
	}
	return types, nil
}

// leaves makes the leaves of a schema without combinations.
func (c *compiler) leaves(n *node, s *pyjson.Object, path string, depth int) error {
	types, err := typesOf(s, path)
	if err != nil {
		return err
	}
	_, enum := s.Values["enum"]
	_, constant := s.Values["const"]
	if enum || constant {
		return c.fixed(n, s, path, depth)
	}
	if types["null"] || types["boolean"] {
		var words []string
		if types["null"] {
			words = append(words, "null")
		}
		if types["boolean"] {
			words = append(words, "true", "false")
		}
		n.own = append(n.own, c.literal(words))
	}
	for _, make := range []struct {
		wanted bool
		leaf   func(*pyjson.Object, string, int) (*leaf, error)
	}{
		{types["number"] || types["integer"], func(s *pyjson.Object, path string, _ int) (*leaf, error) {
			return numberLeaf(s, path, types["number"])
		}},
		{types["string"], c.stringLeaf}, {types["object"], c.objectLeaf}, {types["array"], c.arrayLeaf},
	} {
		if !make.wanted {
			continue
		}
		l, err := make.leaf(s, path, depth)
		if err != nil {
			return err
		}
		n.own = append(n.own, l)
	}
	return nil
}

func (c *compiler) literal(words []string) *leaf {
	l := &leaf{kind: literalKind, literals: newTrie()}
	for i, word := range words {
		l.literals.add(word, i)
	}
	return l
}

// fixed makes the leaf of enum and const: those of their values that the other keywords allow.
func (c *compiler) fixed(n *node, s *pyjson.Object, path string, depth int) error {
	values := []any{s.Values["const"]}
	if enum, given := s.Values["enum"]; given {
		list, ok := enum.([]any)
		if !ok {
			return refuse(path, "has an enum that is no list")
		}
		if constant, both := s.Values["const"]; both {
			list = slices.DeleteFunc(slices.Clone(list), func(v any) bool { return !sameValue(v, constant) })
		}
		values = list
	}
	if c.literals += len(values); c.literals > mostLiterals {
		return refuse(path, "has more than %d values in its enumerations together", mostLiterals)
	}
	rest := without(s, "enum", "const")
	var words []string
	if len(rest.Keys) > 0 {
		other := &compiler{document: c.document, nodes: map[*pyjson.Object]*node{}, paths: map[*texts]string{}}
		made, err := other.node(rest, path, depth+1)
		if err != nil {
			return err
		}
		finish(other.all)
		judge := &Grammar{root: made}
		values = slices.DeleteFunc(slices.Clone(values), func(v any) bool {
			return !judge.Accepts(writeInOrder(v, rest))
		})
	}
	for _, v := range values {
		if word := write(v); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	n.own = append(n.own, c.literal(words))
	return nil
}

func without(s *pyjson.Object, keys ...string) *pyjson.Object {
	rest := &pyjson.Object{Values: map[string]any{}}
	for _, key := range s.Keys {
		if !slices.Contains(keys, key) {
			rest.Keys, rest.Values[key] = append(rest.Keys, key), s.Values[key]
		}
	}
	return rest
}

func numberLeaf(s *pyjson.Object, path string, fractions bool) (*leaf, error) {
	given := map[string]*big.Rat{}
	for _, key := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"} {
		v, ok := s.Values[key]
		if !ok {
			continue
		}
		number, isNumber := v.(json.Number)
		r, ok := new(big.Rat), false
		if isNumber && len(number) <= 64 && exponentFits(string(number)) {
			r, ok = r.SetString(string(number))
		}
		if !ok || key == "multipleOf" && r.Sign() <= 0 {
			return nil, refuse(path, "has a %s that is no number of a usual size", key)
		}
		given[key] = r
	}
	low, lowExclusive := given["minimum"], false
	if r := given["exclusiveMinimum"]; r != nil && (low == nil || r.Cmp(low) >= 0) {
		low, lowExclusive = r, true
	}
	high, highExclusive := given["maximum"], false
	if r := given["exclusiveMaximum"]; r != nil && (high == nil || r.Cmp(high) <= 0) {
		high, highExclusive = r, true
	}
	n := &numbers{}
	if fractions {
		n.fraction = mostFractionDigits
	}
	if !n.bound(low, high, lowExclusive, highExclusive, given["multipleOf"]) {
		return nil, refuse(path, "has a multipleOf with more than %d digits behind the point", mostFractionDigits)
	}
	return &leaf{kind: numberKind, number: n}, nil
}

// exponentFits keeps a bound from becoming a number of many megabytes.
func exponentFits(number string) bool {
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return true
	}
	e, err := strconv.Atoi(strings.TrimPrefix(number[i+1:], "+"))
	return err == nil && e >= -400 && e <= 400
}

// count reads a keyword that is a number of things; negative where it is not given.
func count(s *pyjson.Object, key, path string) (int, error) {
	v, given := s.Values[key]
	if !given {
		return -1, nil
	}
	number, ok := v.(json.Number)
	r, isNumber := new(big.Rat), false
	if ok && len(number) <= 64 && exponentFits(string(number)) {
		r, isNumber = r.SetString(string(number))
	}
	if !isNumber || !r.IsInt() || r.Sign() < 0 {
		return 0, refuse(path, "has a %s that is no whole number", key)
	}
	if r.Cmp(big.NewRat(mostItems, 1)) > 0 {
		if strings.HasPrefix(key, "max") {
			return -1, nil // no reply is so long
		}
		return 0, refuse(path, "has a %s above %d", key, mostItems)
	}
	return int(r.Num().Int64()), nil
}

func (c *compiler) stringLeaf(s *pyjson.Object, path string, _ int) (*leaf, error) {
	least, err := count(s, "minLength", path)
	if err != nil {
		return nil, err
	}
	most, err := count(s, "maxLength", path)
	if err != nil {
		return nil, err
	}
	t := &texts{least: max(0, least), most: most}
	expression, patterned := s.Values["pattern"]
	if format, ok := s.Values["format"].(string); ok && formats[format] != "" {
		if patterned {
			return nil, refuse(path, "has both a pattern and a format; one of them is taken")
		}
		expression, patterned = formats[format], true
	}
	if patterned {
		text, ok := expression.(string)
		if !ok {
			return nil, refuse(path, "has a pattern that is no string")
		}
		p, err := newPattern(text, t.least, t.most)
		if err != nil {
			return nil, refuse(path, "has a pattern that %v", err)
		}
		t = &texts{most: -1, pattern: p}
	}
	c.paths[t] = path
	return &leaf{kind: stringKind, text: t}, nil
}

func (c *compiler) objectLeaf(s *pyjson.Object, path string, depth int) (*leaf, error) {
	l := &leaf{kind: objectKind, names: newTrie()}
	required := map[string]bool{}
	if list, given := s.Values["required"]; given {
		names, ok := list.([]any)
		for _, name := range names {
			text, isText := name.(string)
			ok = ok && isText
			required[text] = true
		}
		if !ok {
			return nil, refuse(path, "has a required that is no list of names")
		}
	}
	extra, closed := s.Values["additionalProperties"]
	if !closed {
		extra = true
	}
	members, ok := s.Values["properties"].(*pyjson.Object)
	if _, given := s.Values["properties"]; given && !ok {
		return nil, refuse(path, "has properties that are no object")
	}
	var err error
	add := func(name string, schema any, at string) error {
		value, err := c.node(schema, at, depth+1)
		if err != nil {
			return err
		}
		l.names.add(write(name)[1:], len(l.properties))
		l.properties = append(l.properties, property{name, value, required[name]})
		return nil
	}
	if members != nil {
		for _, name := range members.Keys {
			if err := add(name, members.Values[name], path+"/properties/"+name); err != nil {
				return nil, err
			}
			delete(required, name)
		}
	}
	unlisted := make([]string, 0, len(required))
	for name := range required {
		unlisted = append(unlisted, name)
	}
	slices.Sort(unlisted)
	for _, name := range unlisted { // required, but not listed: as what is not listed may be
		if err := add(name, extra, path+"/additionalProperties"); err != nil {
			return nil, err
		}
	}
	if extra != false {
		l.extra, err = c.node(extra, path+"/additionalProperties", depth+1)
	}
	return l, err
}

func (c *compiler) arrayLeaf(s *pyjson.Object, path string, depth int) (*leaf, error) {
	if unique, given := s.Values["uniqueItems"]; given && unique != false {
		return nil, refuse(path, `uses "uniqueItems", which is not supported`)
	}
	l := &leaf{kind: arrayKind}
	least, err := count(s, "minItems", path)
	if err != nil {
		return nil, err
	}
	if l.maxItems, err = count(s, "maxItems", path); err != nil {
		return nil, err
	}
	l.minItems = max(0, least)
	items, given := s.Values["items"]
	if !given {
		items = true
	}
	l.items, err = c.node(items, path+"/items", depth+1)
	return l, err
}
