package turn

import (
	"bytes"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// strictTools compiles the schemas of strict tools, and gives what reports whether a call fulfils that of its tool; nil
// where no tool is strict. Schemas refer to nothing outside themselves.
func strictTools(tools []Tool) (func(name, arguments string) bool, *Error) {
	schemas := map[string]*jsonschema.Schema{}
	for _, t := range tools {
		if !t.Strict || t.Parameters == nil {
			continue
		}
		schema, err := compileSchema(t.Parameters)
		if err != nil {
			return nil, Invalid(t.Param+".strict", "the schema of its parameters is not valid; mend it, or leave "+
				"out strict: %.300v", err)
		}
		schemas[t.Name] = schema
	}
	if len(schemas) == 0 {
		return nil, nil
	}
	return func(name, arguments string) bool {
		schema := schemas[name]
		if schema == nil {
			return true
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(arguments))
		return err == nil && schema.Validate(value) == nil
	}, nil
}

func compileSchema(raw []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.AssertFormat()
	if err := c.AddResource("parameters", document); err != nil {
		return nil, err
	}
	return c.Compile("parameters")
}

// noLoader keeps a client's schema from reading files.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("it refers to another document") }
