package operate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"slipway/checks/client"
	"slipway/checks/suite"
	"slipway/fault"
	"slipway/installer/apply"
)

// CheckedServer names the server that a check is about, and where its answers are kept.
type CheckedServer struct {
	Server ServerInput `json:"server"`
	Out    string      `json:"out"` // folder of the answers; empty: checks in the home
}

// The inputs of the checks: a server, and what package suite takes.
type (
	NeedleInput struct {
		CheckedServer
		suite.NeedleInput
	}
	RulerInput struct {
		CheckedServer
		suite.RulerInput
	}
	CacheCheckInput struct {
		CheckedServer
		suite.CacheInput
	}
	ToolsInput struct {
		CheckedServer
		suite.Input
	}
	CardInput struct {
		CheckedServer
		suite.Input // Samples 0: each check's own
	}
	MeasureInput struct {
		Server ServerInput `json:"server"`
		suite.MeasureInput
	}
)

// CheckNeedle is the verb "check needle". Errors of this and the other checks: those of Judged and of suite.
func (o *Operator) CheckNeedle(ctx context.Context, in NeedleInput) (suite.CheckAnswer, error) {
	return judge(ctx, o, in.CheckedServer, in.NeedleInput, suite.NeedleInput.Check, (*suite.Runner).Needle)
}

// CheckRuler is the verb "check ruler".
func (o *Operator) CheckRuler(ctx context.Context, in RulerInput) (suite.CheckAnswer, error) {
	return judge(ctx, o, in.CheckedServer, in.RulerInput, suite.RulerInput.Check, (*suite.Runner).Ruler)
}

// CheckCache is the verb "check cache".
func (o *Operator) CheckCache(ctx context.Context, in CacheCheckInput) (suite.CheckAnswer, error) {
	return judge(ctx, o, in.CheckedServer, in.CacheInput, suite.CacheInput.Check, (*suite.Runner).Cache)
}

// CheckTools is the verb "check tools".
func (o *Operator) CheckTools(ctx context.Context, in ToolsInput) (suite.CheckAnswer, error) {
	return judge(ctx, o, in.CheckedServer, in.Input, suite.Input.Check, (*suite.Runner).Tools)
}

// CheckAll is the verb "check all".
func (o *Operator) CheckAll(ctx context.Context, in CardInput) (suite.CardAnswer, error) {
	return judge(ctx, o, in.CheckedServer, in.Input, suite.CheckCard, (*suite.Runner).All)
}

// Measure is the verb "measure". An error comes with the answer so far.
func (o *Operator) Measure(ctx context.Context, in MeasureInput) (suite.MeasureAnswer, error) {
	return judge(ctx, o, CheckedServer{Server: in.Server}, in.MeasureInput, suite.MeasureInput.Check,
		(*suite.Runner).Measure)
}

// judge refuses what needs no server to be refused, finds the server, and runs one check of it.
func judge[In, Answer any](ctx context.Context, o *Operator, at CheckedServer, in In, check func(In) error,
	run func(*suite.Runner, context.Context, In) (Answer, error)) (none Answer, err error) {
	if err := check(in); err != nil {
		return none, err
	}
	server, profile, err := o.Judged(ctx, at.Server)
	if err != nil {
		return none, err
	}
	return run(o.runner(server, profile, at.Out), ctx, in)
}

func (o *Operator) runner(server *client.Server, profile, out string) *suite.Runner {
	return &suite.Runner{Server: server, Version: o.Version, Profile: profile, Say: o.Caller.Say,
		OpenFolder: func() (string, *os.Root, error) { return o.answersFolder(out) }}
}

// CompareInput is the input of CheckCompare: two servers, or two files of finished runs.
type CompareInput struct {
	suite.Input
	A     ServerInput `json:"a"`
	B     ServerInput `json:"b"`
	FileA string      `json:"file_a"`
	FileB string      `json:"file_b"`
	Out   string      `json:"out"` // folder of the answers; empty: checks in the home
}

// CheckCompare is the verb "check compare".
func (o *Operator) CheckCompare(ctx context.Context, in CompareInput) (suite.CompareAnswer, error) {
	files, servers := in.FileA != "" && in.FileB != "", in.A.URL != "" && in.B.URL != ""
	mixed := (in.FileA != "" || in.FileB != "") && (in.A.URL != "" || in.B.URL != "")
	if mixed || !files && !servers {
		return suite.CompareAnswer{}, wrong("check compare needs two addresses or two files, not one of each")
	}
	if files {
		return suite.CompareRuns(in.FileA, in.FileB)
	}
	if err := in.Check(); err != nil {
		return suite.CompareAnswer{}, err
	}
	if err := in.B.check("-b"); err != nil { // before the first server is asked
		return suite.CompareAnswer{}, err
	}
	a, _, err := o.Judged(ctx, in.A)
	if err != nil {
		return suite.CompareAnswer{}, err
	}
	b, _, err := o.Judged(ctx, in.B)
	if err != nil {
		return suite.CompareAnswer{}, err
	}
	return o.runner(a, "", in.Out).Compare(ctx, b, in.Input)
}

// answersFolder opens the folder of answers, which only the person may read: they hold what models wrote. Errors: usage
// *Errors.
func (o *Operator) answersFolder(out string) (path string, folder *os.Root, err error) {
	if out != "" {
		if err = os.MkdirAll(out, 0o700); err == nil {
			folder, err = os.OpenRoot(out)
		}
		if err != nil {
			return "", nil, wrong("--out: %s", fault.Innermost(err))
		}
		path, err = filepath.Abs(out)
		return path, folder, err
	}
	err = o.inHome(func(home *apply.Home) error {
		path = filepath.Join(home.Path, "checks")
		if err := home.Root.MkdirAll("checks", 0o700); err != nil {
			return err
		}
		folder, err = home.Root.OpenRoot("checks")
		return err
	})
	if f, ok := fault.In(err); ok && f.Class == fault.NotReady {
		return "", nil, &Error{Text: "Nothing is set up here, so there is no home to keep the answers in.",
			Of: fault.Fault{Class: fault.Usage, Step: fault.GiveFolder}}
	}
	return path, folder, err
}

// wrong is a mistake in what was asked for.
func wrong(format string, args ...any) error {
	return &Error{Text: strings.TrimSpace(fmt.Sprintf(format, args...)),
		Of: fault.Fault{Class: fault.Usage, Step: fault.ReadHelp}}
}
