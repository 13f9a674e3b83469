// Command slipway-server answers OpenAI's API with one local model.
//
// Exit codes: 0 clean end (SIGTERM, SIGINT and SIGHUP included), 1 a bug or a broken network, 2 a mistake in the
// command line or a setting that cannot be honoured, 3 the model cannot be loaded, 4 this machine's GPU failed its
// self-test, 13 the address is not available.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/engine/host"
)

// version is set at build time (-ldflags "-X main.version=…").
var version = "0.1.0-dev"

const (
	exitOK      = 0
	exitBug     = 1
	exitUsage   = 2
	exitModel   = 3
	exitMetal   = 4
	exitAddress = 13
)

// failure is an error with the exit code it deserves.
type failure struct {
	code int
	what string
}

func (f *failure) Error() string { return f.what }

func usage(format string, args ...any) error {
	return &failure{exitUsage, fmt.Sprintf(format, args...)}
}

func main() { os.Exit(run(os.Args, os.Stdout, os.Stderr)) }

// run is main with its effects as arguments. Errors are one sentence on errOut.
func run(args []string, out, errOut io.Writer) int {
	err := newApp(out, errOut).Run(args)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(errOut, "slipway-server: %s\n", strings.TrimSpace(err.Error()))
	return exitCode(err)
}

// exitCode is what an error ends the program with.
func exitCode(err error) int {
	var f *failure
	var setting *host.SettingError
	var model *host.ModelError
	switch {
	case errors.As(err, &f):
		return f.code
	case errors.As(err, &setting):
		return exitUsage
	case errors.As(err, &model):
		return exitModel
	}
	return exitBug
}

// newApp wires the verbs. Guards: usage errors go to errOut with exit 2, an argument that is no flag is refused (flags
// after it would not be read), an unknown command is exit 2.
func newApp(out, errOut io.Writer) *cli.App {
	app := &cli.App{
		Name:            "slipway-server",
		Usage:           "answer OpenAI's API with one local model",
		Version:         version,
		Writer:          errOut,
		ErrWriter:       errOut,
		HideHelpCommand: true,
		Commands:        []*cli.Command{serveVerb(errOut), probeVerb(out), selftestVerb(out), cacheVerb(out)},
		ExitErrHandler:  func(*cli.Context, error) {},
		OnUsageError: func(_ *cli.Context, err error, _ bool) error {
			return usage("%v; see slipway-server --help", err)
		},
		CommandNotFound: func(*cli.Context, string) {},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usage("there is no command %q; there are serve, probe, selftest and cache", c.Args().First())
			}
			cli.ShowAppHelp(c)
			return usage("a command is missing; there are serve, probe, selftest and cache")
		},
	}
	cli.VersionPrinter = func(*cli.Context) { fmt.Fprintln(out, "slipway-server", version) }
	for _, command := range app.Commands {
		guard(command)
	}
	return app
}

func guard(command *cli.Command) {
	command.HideHelpCommand = true
	command.OnUsageError = func(_ *cli.Context, err error, _ bool) error {
		return usage("%s: %v; see slipway-server %s --help", command.Name, err, command.Name)
	}
	if len(command.Subcommands) > 0 {
		for _, sub := range command.Subcommands {
			guard(sub)
		}
		return // its argument is the command after it
	}
	command.Before = func(c *cli.Context) error {
		args := c.Args().Slice()
		if behind := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }); behind >= 0 {
			return usage("%s: %s comes after an argument, where flags are not read", command.Name, args[behind])
		}
		if len(args) > 0 {
			return usage("%s takes no argument %q, only flags", command.Name, args[0])
		}
		return nil
	}
}
