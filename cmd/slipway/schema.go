package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/checks/record"
	"slipway/checks/suite"
	"slipway/installer/operate"
)

// answers is the data of every verb that has a document. The schema of a verb is made of the type, so that it cannot
// say anything else than the program does; the tests hold every document against it.
var answers = map[string]any{
	"setup": operate.SetupAnswer{}, "setup --dry-run": operate.LookAnswer{}, "doctor": operate.LookAnswer{},
	"plan":  operate.PlanAnswer{},
	"apply": operate.SetupAnswer{}, "apply --detach": operate.JobAnswer{}, "wait": operate.JobAnswer{},
	"up":   operate.SetupAnswer{},
	"down": operate.DownAnswer{}, "status": operate.StatusAnswer{}, "logs": operate.LogsAnswer{}, "ask": operate.AskAnswer{},
	"verify": operate.VerifyAnswer{}, "upgrade": operate.SetupAnswer{}, "uninstall": operate.UninstallAnswer{},
	"connect": operate.ConnectAnswer{}, "models list": operate.ModelsAnswer{}, "models lock": operate.LockAnswer{},
	"gc": operate.GCAnswer{}, "cache show": operate.CacheAnswer{}, "cache clear": operate.CacheAnswer{},
	"bundle export": operate.BundleAnswer{}, "bundle import": operate.BundleAnswer{},
	"agent prompt": operate.AgentAnswer{},
	"neighbors":    operate.NeighborsAnswer{}, "restore": operate.RestoreAnswer{}, "measure": suite.MeasureAnswer{},
	"check needle": record.Report{}, "check ruler": record.Report{}, "check cache": record.Report{},
	"check tools":   record.Report{},
	"check compare": suite.CompareAnswer{}, "check all": suite.CardAnswer{}, "version": versionAnswer{},
	"schema": schemaAnswer{},
}

// schemaAnswer is the data of schema.
type schemaAnswer struct {
	Verb   string         `json:"verb"`
	Schema map[string]any `json:"schema"`
}

func schemaVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "schema", Usage: "print the JSON schema of a verb's document", ArgsUsage: "VERB...",
		Action: func(c *cli.Context) error {
			verb := strings.Join(c.Args().Slice(), " ")
			answer, ok := answers[verb]
			if !ok {
				return usage(fmt.Sprintf("there is no document of %q; there are: %s", verb, strings.Join(answerNames(), ", ")))
			}
			schema := envelopeSchema(answer)
			return s.result(exitOK, schemaAnswer{verb, schema}, func(w io.Writer) {
				enc := json.NewEncoder(w)
				enc.SetIndent("", "  ")
				enc.Encode(schema)
			})
		},
	}
}

func answerNames() []string {
	var names []string
	for name := range answers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// envelopeSchema is the schema of a whole document: data of this type, or an error.
func envelopeSchema(answer any) map[string]any {
	return map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
		"required": []string{"ok", "schema_version", "meta"}, "additionalProperties": false,
		"properties": map[string]any{
			"ok": map[string]any{"type": "boolean"}, "schema_version": map[string]any{"const": schemaVersion},
			"data": schemaOf(reflect.TypeOf(answer)), "error": schemaOf(reflect.TypeOf(errorBody{})),
			"meta": schemaOf(reflect.TypeOf(meta{})),
		},
		"oneOf": []any{
			map[string]any{"required": []string{"data"}, "properties": map[string]any{"ok": map[string]any{"const": true}}},
			map[string]any{"required": []string{"error"}, "properties": map[string]any{"ok": map[string]any{"const": false}}},
		},
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
		return map[string]any{"type": []string{"array", "null"}, "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Interface:
		return map[string]any{}
	case reflect.Struct:
		properties, required := map[string]any{}, []string{}
		addFields(t, properties, &required)
		return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	}
	panic("slipway: no schema for " + t.String())
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
