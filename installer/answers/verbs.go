package answers

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"slipway/checks/suite"
	"slipway/fault"
	"slipway/installer/operate"
)

// data is the data of every verb that has a document.
var data = map[string]any{
	"setup":                 operate.SetupAnswer{},
	"setup --dry-run":       operate.LookAnswer{},
	"doctor":                operate.LookAnswer{},
	"plan":                  operate.PlanAnswer{},
	"apply":                 operate.SetupAnswer{},
	"apply --detach":        operate.JobAnswer{},
	"wait":                  operate.JobAnswer{},
	"up":                    operate.SetupAnswer{},
	"down":                  operate.DownAnswer{},
	"status":                operate.StatusAnswer{},
	"logs":                  operate.LogsAnswer{},
	"ask":                   operate.AskAnswer{},
	"verify":                operate.VerifyAnswer{},
	"upgrade":               operate.SetupAnswer{},
	"uninstall":             operate.UninstallAnswer{},
	"connect":               operate.ConnectAnswer{},
	"models list":           operate.ModelsAnswer{},
	"models lock":           operate.LockAnswer{},
	"gc":                    operate.GCAnswer{},
	"cache show":            operate.CacheAnswer{},
	"cache clear":           operate.CacheAnswer{},
	"bundle export":         operate.BundleAnswer{},
	"bundle import":         operate.BundleAnswer{},
	"agent prompt":          operate.AgentAnswer{},
	"neighbors":             operate.NeighborsAnswer{},
	"restore":               operate.RestoreAnswer{},
	"measure":               suite.MeasureAnswer{},
	"measure --draft-sweep": suite.SweepAnswer{},
	"check needle":          suite.CheckAnswer{},
	"check ruler":           suite.CheckAnswer{},
	"check cache":           suite.CheckAnswer{},
	"check tools":           suite.CheckAnswer{},
	"check compare":         suite.CompareAnswer{},
	"check all":             suite.CardAnswer{},
	"version":               VersionAnswer{},
	"schema":                SchemaAnswer{},
}

// Verbs are the names of all verbs that have a document, sorted.
func Verbs() []string { return slices.Sorted(maps.Keys(data)) }

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
func Schema(verb string) (SchemaAnswer, error) {
	answer, found := data[verb]
	if !found {
		return SchemaAnswer{}, &UnknownVerb{verb}
	}
	return SchemaAnswer{verb, envelopeSchema(answer)}, nil
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
