package answers

import (
	"context"

	"slipway/fault"
	"slipway/installer/operate"
)

// Answered is the document of an answer.
func Answered(data any, meta Meta) Envelope {
	return Envelope{OK: true, SchemaVersion: SchemaVersion, Data: data, Meta: meta}
}

// Failed is the document of a failure. next is the argv of the next step, as a person starts it; empty: none.
func Failed(f *Failure, next []string, meta Meta) Envelope {
	class := fault.Class(f.Code)
	return Envelope{SchemaVersion: SchemaVersion, Meta: meta, Error: &Error{Code: class.String(), Message: f.Error(),
		Details: f.Details, Next: next, Retryable: class.Retryable() || class.Stopped() && f.Continues}}
}

// Document carries out a verb by its name, as Call does, and gives its whole document, whatever happens.
func Document(ctx context.Context, o *operate.Operator, name string, input []byte) Envelope {
	data, err := Call(ctx, o, name, input)
	meta := Meta{Command: name, Version: o.Version, ExitCode: int(ClassOf(data)), Toy: o.Toy()}
	if open := o.OpenPlan(); open != nil {
		meta.OpenPlan = &OpenPlan{Digest: open.Digest, Continue: o.Caller.Command(open.Words...)}
	}
	says := spellingOf(o)
	if err == nil {
		return says.Document(Answered(data, meta))
	}
	f := Explain(err)
	meta.ExitCode = f.Code
	next := []string{}
	if len(f.Next) > 0 {
		next = o.Caller.Command(f.Next...)
	}
	return says.Document(Failed(f, next, meta))
}
