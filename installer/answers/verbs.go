package answers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"

	"slipway/fault"
	"slipway/installer"
	"slipway/installer/operate"
)

// verb is one verb: its input, its answer and how it is carried out.
type verb struct {
	input  any // the zero value of its input
	answer any // the zero value of its answer, the data of its document
	call   func(ctx context.Context, o *operate.Operator, input []byte) (any, error)
}

// nothing is the input of a verb that takes none.
type nothing struct{}

// verbOf makes a verb of a function from its input to its answer. An answer may come with an error: what was found so
// far.
func verbOf[In, Answer any](call func(o *operate.Operator, ctx context.Context, in In) (Answer, error)) verb {
	var in In
	var answer Answer
	return verb{in, answer, func(ctx context.Context, o *operate.Operator, input []byte) (any, error) {
		in, err := read[In](input)
		if err != nil {
			return answer, err
		}
		return call(o, ctx, in)
	}}
}

// of makes a verb of a function that takes no input.
func of[Answer any](call func(o *operate.Operator, ctx context.Context) (Answer, error)) verb {
	return verbOf(func(o *operate.Operator, ctx context.Context, _ nothing) (Answer, error) { return call(o, ctx) })
}

// verbs are those that have a document. init fills it, because schema, one of them, reads it.
var verbs map[string]verb

func init() {
	verbs = map[string]verb{
		"setup":           verbOf((*operate.Operator).Setup),
		"setup --dry-run": verbOf((*operate.Operator).DryRun),
		"doctor":          verbOf((*operate.Operator).Doctor),
		"plan":            verbOf((*operate.Operator).Plan),
		"apply":           verbOf((*operate.Operator).Apply),
		"apply --detach":  verbOf((*operate.Operator).Detach),
		"wait":            verbOf((*operate.Operator).Wait),
		"up":              verbOf((*operate.Operator).Up),
		"down":            of((*operate.Operator).Down),
		"status":          of((*operate.Operator).Status),
		"logs": verbOf(func(o *operate.Operator, _ context.Context, in operate.LogsInput) (operate.LogsAnswer, error) {
			return o.Logs(in)
		}),
		"ask":       verbOf((*operate.Operator).Ask),
		"verify":    verbOf((*operate.Operator).Verify),
		"upgrade":   verbOf((*operate.Operator).Upgrade),
		"uninstall": verbOf((*operate.Operator).Uninstall),
		"connect": verbOf(func(o *operate.Operator, _ context.Context,
			in operate.ConnectInput) (operate.ConnectAnswer, error) {
			return o.Connect(in)
		}),
		"models list":           of((*operate.Operator).Models),
		"models lock":           verbOf((*operate.Operator).LockModel),
		"gc":                    verbOf((*operate.Operator).GC),
		"cache show":            of((*operate.Operator).ShowCache),
		"cache clear":           verbOf((*operate.Operator).ClearCache),
		"bundle export":         verbOf((*operate.Operator).ExportBundle),
		"bundle import":         verbOf((*operate.Operator).ImportBundle),
		"neighbors":             verbOf((*operate.Operator).Neighbors),
		"restore":               verbOf((*operate.Operator).Restore),
		"measure":               verbOf((*operate.Operator).Measure),
		"measure --draft-sweep": verbOf((*operate.Operator).MeasureDrafts),
		"check needle":          verbOf((*operate.Operator).CheckNeedle),
		"check ruler":           verbOf((*operate.Operator).CheckRuler),
		"check cache":           verbOf((*operate.Operator).CheckCache),
		"check tools":           verbOf((*operate.Operator).CheckTools),
		"check compare":         verbOf((*operate.Operator).CheckCompare),
		"check all":             verbOf((*operate.Operator).CheckAll),
		"agent prompt": verbOf(func(_ *operate.Operator, _ context.Context,
			in operate.AgentInput) (operate.AgentAnswer, error) {
			return operate.AgentPrompt(in)
		}),
		"version": of(func(o *operate.Operator, _ context.Context) (VersionAnswer, error) {
			return Version(o.Version), nil
		}),
		"schema": verbOf(func(_ *operate.Operator, _ context.Context, in SchemaInput) (SchemaAnswer, error) {
			return Schema(in.Verb)
		}),
	}
}

// Call carries out a verb by its name, as Verbs gives them. input is one JSON object of the verb's input, whose schema
// InputSchema gives; empty: every field is left out. The answer is of the verb's own type, also beside an error.
// Errors: *UnknownVerb, *installer.ChoiceError for an input that cannot be read, those of the verb.
func Call(ctx context.Context, o *operate.Operator, name string, input []byte) (answer any, err error) {
	v, found := verbs[name]
	if !found {
		return nil, &UnknownVerb{name}
	}
	return v.call(ctx, o, input)
}

// read reads an input strictly: a field that is not known is a mistake, and never ignored.
func read[In any](input []byte) (in In, err error) {
	if len(bytes.TrimSpace(input)) == 0 {
		return in, nil
	}
	d := json.NewDecoder(bytes.NewReader(input))
	d.DisallowUnknownFields()
	if err = d.Decode(&in); err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = fmt.Errorf("something follows the object")
		}
	}
	if err != nil {
		return in, &installer.ChoiceError{Why: "the input cannot be read: " + err.Error()}
	}
	return in, nil
}

// Verbs are the names of all verbs that have a document, sorted.
func Verbs() []string { return slices.Sorted(maps.Keys(verbs)) }

// SchemaInput is the input of the verb schema.
type SchemaInput struct {
	Verb string `json:"verb"`
}

// SchemaAnswer is the data of the verb schema.
type SchemaAnswer struct {
	Verb   string         `json:"verb"`
	Schema map[string]any `json:"schema"` // JSON Schema, draft 2020-12, of the whole document
}

// UnknownVerb is returned for a name that has no document.
type UnknownVerb struct{ Verb string }

func (e *UnknownVerb) Error() string {
	return fmt.Sprintf("there is no document of %q; there are: %s", e.Verb, strings.Join(Verbs(), ", "))
}

// Fault is the class of a wrong argument.
func (e *UnknownVerb) Fault() fault.Fault {
	return fault.Fault{Class: fault.Usage, Step: fault.ReadHelp}
}

// Schema returns the schema of a verb's document. Error: *UnknownVerb.
func Schema(name string) (SchemaAnswer, error) {
	v, found := verbs[name]
	if !found {
		return SchemaAnswer{}, &UnknownVerb{name}
	}
	return SchemaAnswer{name, envelopeSchema(v.answer)}, nil
}

// InputSchema returns the schema of a verb's input, as Call takes it. Error: *UnknownVerb.
func InputSchema(name string) (map[string]any, error) {
	v, found := verbs[name]
	if !found {
		return nil, &UnknownVerb{name}
	}
	return inputSchema(v.input), nil
}

// VersionAnswer is the data of the verb version.
type VersionAnswer struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	Target  string `json:"target"`
}

// Version describes this program. version is its own name for itself.
func Version(version string) VersionAnswer {
	return VersionAnswer{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
}
