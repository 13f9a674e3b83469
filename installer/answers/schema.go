package answers

import (
	"reflect"
	"strings"
	"time"
)

// envelopeSchema is the schema of a whole document: data of this type, or an error.
func envelopeSchema(answer any) map[string]any {
	return map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
		"required": []string{"ok", "schema_version", "meta"}, "additionalProperties": false,
		"properties": map[string]any{
			"ok": map[string]any{"type": "boolean"}, "schema_version": map[string]any{"const": SchemaVersion},
			"data": schemaOf(reflect.TypeOf(answer)), "error": schemaOf(reflect.TypeOf(Error{})),
			"meta": schemaOf(reflect.TypeOf(Meta{})),
		},
		"oneOf": []any{
			map[string]any{"required": []string{"data"}, "properties": map[string]any{
				"ok": map[string]any{"const": true}}},
			map[string]any{"required": []string{"error"}, "properties": map[string]any{
				"ok": map[string]any{"const": false}}},
		},
	}
}

// inputSchema is the schema of a verb's input. Every field may be left out.
func inputSchema(input any) map[string]any {
	schema := schemaOf(reflect.TypeOf(input))
	leaveOut(schema)
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	return schema
}

func leaveOut(schema map[string]any) {
	delete(schema, "required")
	for _, part := range schema {
		if part, ok := part.(map[string]any); ok {
			leaveOut(part)
		}
	}
}

// schemaOf covers the types that documents are made of.
func schemaOf(t reflect.Type) map[string]any {
	if t == reflect.TypeOf(time.Time{}) {
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Pointer:
		return map[string]any{"anyOf": []any{map[string]any{"type": "null"}, schemaOf(t.Elem())}}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": []string{"string", "null"}, "contentEncoding": "base64"}
		}
		return map[string]any{"type": []string{"array", "null"}, "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Interface:
		return map[string]any{}
	case reflect.Struct:
		properties, required := map[string]any{}, []string{}
		addFields(t, properties, &required)
		return map[string]any{"type": "object", "properties": properties, "required": required,
			"additionalProperties": false}
	}
	panic("answers: no schema for " + t.String())
}

// addFields follows encoding/json: embedded structs are spread out, omitempty fields may be missing.
func addFields(t reflect.Type, properties map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			addFields(f.Type, properties, required)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		properties[name] = schemaOf(f.Type)
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}
