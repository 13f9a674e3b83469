// Command slipway sets up a local language model and takes it away again: it looks at the machine, plans, asks,
// fetches, builds, launches, and keeps a receipt of all of it. Here are verbs, wording and exit codes; what is done is
// decided in the packages of installer.
package main

import (
	"context"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"slipway/installer"
	"slipway/installer/build"
	"slipway/installer/consent"
	"slipway/installer/machine"
)

// Set by the linker in releases.
var (
	version        = "0.1.0-dev"
	prebuiltServer = "" // "sha256:..." of the slipway-server that a release puts beside this program
)

// another changes the environment, for tests: a recorded machine, other models. nil: nothing is changed.
var another func(*installer.Environment)

// bareMachine forgets where this program was compiled and where Go usually lies: the tests' machine without Go.
var bareMachine bool

func main() {
	if len(os.Args) > 1 && os.Args[1] == machine.MetalVerb {
		os.Exit(machine.MetalMain(os.Stdout, os.Stderr))
	}
	for _, name := range []string{"SLIPWAY_HOME", "SLIPWAY_SOURCE"} {
		if os.Getenv(name) == "" {
			os.Unsetenv(name) // set to nothing is not set: a forgotten value must not mean this folder
		}
	}
	ctx, signals := watchSignals(context.Background())
	code := run(ctx, os.Args)
	os.Exit(signals.code(code))
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string) int {
	s := newSession(ctx, args, os.Stdout, os.Stderr)
	return s.finish(newApp(s).RunContext(ctx, args))
}

func newSession(ctx context.Context, args []string, out, errOut io.Writer) *session {
	return &session{
		ctx: ctx, out: &results{to: out}, errOut: errOut, invocation: invocation(args[0]), json: wantsJSON(args[1:]),
		endOfFlags:  slices.Contains(args, "--"),
		terminal:    &consent.Terminal{In: os.Stdin, Out: os.Stderr, Getenv: os.Getenv},
		environment: environment(),
	}
}

// environment collects what the environment says, and then puts the system's folders first on PATH: an app's or an
// assistant's PATH may lack them, and libraries run ps and lsof by name.
func environment() installer.Environment {
	at := installer.Environment{ToolPath: os.Getenv("PATH"), PrebuiltDigest: installer.Digest(prebuiltServer),
		Sources: machine.System(), Getenv: os.Getenv}
	if os.Getenv("HOME") == "" { // under a service manager, or in a bare container
		if me, err := user.Current(); err == nil && filepath.IsAbs(me.HomeDir) {
			os.Setenv("HOME", me.HomeDir)
		}
	}
	at.UserHome, _ = os.UserHomeDir()
	at.WorkingDir, _ = os.Getwd()
	at.Executable, _ = os.Executable()
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) && !bareMachine {
		at.RecordedSource = filepath.Dir(filepath.Dir(filepath.Dir(file)))
	}
	os.Setenv("PATH", "/usr/bin:/bin:/usr/sbin:/sbin:"+at.ToolPath)
	if !bareMachine {
		at.ToolPath += ":" + strings.Join(build.WellKnown, ":")
	}
	if another != nil {
		another(&at)
	}
	return at
}

// invocation is how a person starts this program again: the name that was typed, or go run, whose program is gone when
// it ends.
func invocation(argv0 string) []string {
	if fromGoRun(argv0) {
		return []string{"go", "run", "./cmd/slipway"}
	}
	return []string{argv0}
}

// inGoCache matches a program that go run keeps: a hash in a folder of two digits, in whatever folder GOCACHE names.
var inGoCache = regexp.MustCompile(`/[0-9a-f]{2}/[0-9a-f]{64}-d/[^/]+$`)

// fromGoRun reports whether a program was started by go run, which builds it in a folder of its own below GOTMPDIR or
// keeps it in its cache.
func fromGoRun(argv0 string) bool {
	return inGoCache.MatchString(argv0) || regexp.MustCompile(`/go-build[0-9]*/`).MatchString(argv0)
}

// wantsJSON looks at the raw arguments, because a usage error has to be a document too.
func wantsJSON(args []string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if a == "--json" || a == "-json" || a == "--json=true" {
			return true
		}
	}
	return false
}
