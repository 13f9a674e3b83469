package consent

import (
	"fmt"
	"strings"

	"slipway/fault"
	"slipway/installer/plan"
)

// Grants is what was allowed.
type Grants struct {
	classes map[plan.Class]bool
	digest  string
}

// Yes is what --yes allows: download, write in our home, build and launch. Never files that only the hub vouches for,
// never a server that is not ours, never listening beyond this machine.
func Yes() Grants {
	return Of(plan.Download, plan.Write, plan.Build, plan.Launch)
}

// Of allows these classes. Reading needs no grant.
func Of(classes ...plan.Class) Grants {
	g := Grants{classes: map[plan.Class]bool{plan.Read: true}}
	for _, c := range classes {
		g.classes[c] = true
	}
	return g
}

// Digest allows everything in the plan of this digest.
func Digest(digest string) Grants {
	g := Of()
	g.digest = digest
	return g
}

// With adds classes.
func (g Grants) With(classes ...plan.Class) Grants {
	all := Of(classes...)
	for c := range g.classes {
		all.classes[c] = true
	}
	all.digest = g.digest
	return all
}

// NeededError names the classes that a plan needs and that were not granted.
type NeededError struct{ Classes []plan.Class }

func (e *NeededError) Error() string {
	words := make([]string, len(e.Classes))
	for i, c := range e.Classes {
		words[i] = Words(c)
	}
	return "consent is needed to " + strings.Join(words, ", ")
}

// Fault: see package fault.
func (e *NeededError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Consent, Step: fault.NothingDone}
}

// Check reports whether the actions that are pending are allowed. Done actions need nothing. Errors: *NeededError.
func (g Grants) Check(p plan.Plan, s plan.Assessment) error {
	if g.digest != "" && g.digest == p.Digest {
		return nil
	}
	var missing []plan.Class
	seen := map[plan.Class]bool{}
	for _, a := range p.Actions {
		if s.States[a.ID] == plan.Done {
			continue
		}
		for _, c := range a.Consent {
			if !g.classes[c] && !seen[c] {
				seen[c] = true
				missing = append(missing, c)
			}
		}
	}
	if len(missing) > 0 {
		return &NeededError{missing}
	}
	return nil
}

// Words says what a class allows.
func Words(c plan.Class) string {
	switch c {
	case plan.Read:
		return "look"
	case plan.Download:
		return "download"
	case plan.Write:
		return "write in the home"
	case plan.Build:
		return "build the server"
	case plan.Launch:
		return "start the server"
	case plan.Unproven:
		return "install files without a proof (--accept-told)"
	case plan.Stop:
		return "stop another server (--allow-stop KIND)"
	case plan.OpenLAN:
		return "listen beyond this machine"
	}
	return fmt.Sprintf("do what %q needs", string(c))
}
