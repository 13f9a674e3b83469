package qwen35

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"slipway/engine/text/pyjson"
)

// The model writes the values of a call as bare text. The tool's JSON schema says what they are.

// typeSet is the set of JSON types that a schema allows.
type typeSet uint8

const (
	typeString typeSet = 1 << iota
	typeInteger
	typeNumber
	typeBoolean
	typeObject
	typeArray
	typeNull

	anyType = typeString | typeInteger | typeNumber | typeBoolean | typeObject | typeArray | typeNull
)

var typeNames = map[string]typeSet{
	"string": typeString, "integer": typeInteger, "number": typeNumber, "boolean": typeBoolean, "object": typeObject,
	"array": typeArray, "null": typeNull,
}

const null = "null"

// onlyText reports that a value of these types is a string or null.
func (t typeSet) onlyText() bool { return t&^(typeString|typeNull) == 0 }

// toolSchema is the JSON schema of a function's parameters; nil where there is none.
type toolSchema struct{ parameters *pyjson.Object }

// readToolSchemas gives the schemas by the functions' names.
func readToolSchemas(tools []json.RawMessage) map[string]toolSchema {
	schemas := map[string]toolSchema{}
	for _, raw := range tools {
		v, _ := pyjson.Decode(raw)
		tool := member(v, "function")
		name, ok := member(tool, "name").(string)
		if !ok {
			name, _ = member(v, "name").(string)
			tool = v
		}
		parameters, _ := member(tool, "parameters").(*pyjson.Object)
		if name != "" {
			schemas[name] = toolSchema{parameters}
		}
	}
	return schemas
}

// member gives v's member, nil where v is no object or has none of the name.
func member(v any, name string) any {
	o, ok := v.(*pyjson.Object)
	if !ok || o == nil {
		return nil
	}
	return o.Values[name]
}

// knows reports whether the function has a parameter of the name. A schema without properties, or one that allows
// additional ones, knows every name.
func (s toolSchema) knows(parameter string) bool {
	if s.parameters == nil || parameter == "" {
		return false
	}
	properties, ok := member(s.parameters, "properties").(*pyjson.Object)
	if !ok || member(s.parameters, "patternProperties") != nil {
		return true
	}
	if _, known := properties.Values[parameter]; known {
		return true
	}
	more, given := s.parameters.Values["additionalProperties"]
	return given && more != false && more != nil
}

// complete reports whether the call has all the arguments that the schema requires.
func (s toolSchema) complete(c readCall) bool {
	required, _ := member(s.parameters, "required").([]any)
	for _, name := range required {
		if text, ok := name.(string); ok && !slices.ContainsFunc(c.arguments,
			func(a readArgument) bool { return a.name == text }) {
			return false
		}
	}
	return true
}

// typesOf gives the types of a parameter: string where the schema does not know it, any where it says nothing.
func (s toolSchema) typesOf(parameter string) typeSet {
	properties, ok := member(s.parameters, "properties").(*pyjson.Object)
	if !ok {
		return typeString
	}
	schema, known := properties.Values[parameter]
	if !known {
		return typeString
	}
	if types := s.types(schema, 8); types != 0 {
		return types
	}
	return anyType
}

// types reads a schema; depth bounds the references and alternatives followed. 0: it says nothing.
func (s toolSchema) types(schema any, depth int) (types typeSet) {
	if depth == 0 {
		return 0
	}
	switch t := member(schema, "type").(type) {
	case string:
		types |= typeNames[t]
	case []any:
		for _, name := range t {
			if text, ok := name.(string); ok {
				types |= typeNames[text]
			}
		}
	}
	if types != 0 {
		return types
	}
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		alternatives, _ := member(schema, word).([]any)
		for _, alternative := range alternatives {
			types |= s.types(alternative, depth-1)
		}
	}
	values, _ := member(schema, "enum").([]any)
	if value := member(schema, "const"); value != nil {
		values = append(values, value)
	}
	for _, value := range values {
		types |= typeOfValue(value)
	}
	if reference, ok := member(schema, "$ref").(string); ok && strings.HasPrefix(reference, "#/") {
		var at any = s.parameters
		for _, step := range strings.Split(reference[2:], "/") {
			at = member(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		}
		types |= s.types(at, depth-1)
	}
	if types == 0 && member(schema, "properties") != nil {
		return typeObject
	}
	return types
}

func typeOfValue(v any) typeSet {
	switch v := v.(type) {
	case nil:
		return typeNull
	case bool:
		return typeBoolean
	case json.Number:
		if strings.ContainsAny(string(v), ".eE") {
			return typeNumber
		}
		return typeInteger
	case string:
		return typeString
	case []any:
		return typeArray
	}
	return typeObject
}

// argumentJSON gives the JSON of a value as the model wrote it. "null" is null whatever the types; what fits none
// of them is a string.
func argumentJSON(value string, types typeSet) string {
	if value == null {
		return null
	}
	if types.onlyText() {
		return `"` + jsonText(value) + `"`
	}
	text := strings.TrimSpace(value)
	if text == null {
		return null
	}
	if types&typeBoolean != 0 {
		switch lower := strings.ToLower(text); {
		case lower == "true" || lower == "false":
			return lower
		case types == typeBoolean:
			return "false"
		}
	}
	if types&(typeInteger|typeNumber) != 0 {
		if number, ok := pyjson.Number(text, types&typeNumber != 0); ok {
			return number
		}
		if types&typeString == 0 { // 140.0 is 140
			if number, ok := pyjson.Number(text, true); ok && !strings.ContainsAny(number, ".eE") {
				return number
			}
		}
	}
	if types&typeObject != 0 && strings.HasPrefix(text, "{") || types&typeArray != 0 && strings.HasPrefix(text, "[") {
		var compact bytes.Buffer
		if json.Compact(&compact, []byte(text)) == nil {
			return compact.String()
		}
		if converted, ok := pyjson.Literal(text); ok {
			return converted
		}
	}
	return `"` + jsonText(value) + `"`
}

// jsonText is s as the inside of a JSON string.
func jsonText(s string) string {
	var out strings.Builder
	pyjson.AppendText(&out, s)
	return out.String()
}
