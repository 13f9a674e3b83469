package answers

import (
	"errors"
	"strings"

	"slipway/fault"
	"slipway/termtext"
)

// Failure is a verb's error with its final words. Next is the argv of the next step without this program's name; nil
// when a person must act first.
type Failure struct {
	Code    int    // the exit code: the number of a fault.Class
	What    string // what happened and why, a sentence
	Then    string // what next, a sentence
	Command string // that ends the sentence: it is printed whole; empty: none
	Next    []string
	Details any
	Step    fault.Step

	Continues bool // the same command goes on where it stopped
}

func (f *Failure) Error() string {
	return strings.TrimSpace(strings.TrimSpace(f.What+" "+f.Then) + " " + f.Command)
}

// detailed is an error with facts for the document's details.
type detailed interface{ Details() any }

// Explain gives any error its words. Its code is its own: see package fault.
func Explain(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if f := withFacts(err); f != nil {
		return f
	}
	of, carrier := fault.Of(err)
	step := steps[of.Step]
	text := carrier.Error()
	if fault.Fixed(carrier) {
		text = err.Error()
	}
	if of.Step == fault.MoveObstacle {
		text = fault.InTheWay(err)
	}
	f := &Failure{Code: int(of.Class), What: termtext.Sentence(step.before + text), Then: step.then, Step: of.Step,
		Continues: of.Step == fault.Continue}
	if step.verbatim {
		f.What = strings.TrimSuffix(step.before+text, ".") + "."
	}
	if step.next != nil {
		f.Next = append(append([]string{}, step.next...), of.Args...)
	}
	if d, ok := carrier.(detailed); ok {
		f.Details = d.Details()
	}
	return f
}
