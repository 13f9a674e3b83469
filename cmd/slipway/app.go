package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"slipway/fault"
	"slipway/profiles"
	"slipway/termtext"
)

// newApp wires the verbs. The guards: usage errors are ours (exit 2, to standard error), a flag after a positional
// argument is refused and never ignored, an unknown command is exit 2.
func newApp(s *session) *cli.App {
	app := &cli.App{
		Name:            "slipway",
		Usage:           "set up a local language model the same way twice, and take it away again",
		Version:         version,
		Writer:          s.errOut,
		ErrWriter:       s.errOut,
		HideHelpCommand: true,
		Commands: []*cli.Command{
			setupVerb(s), planVerb(s), applyVerb(s), doctorVerb(s), upVerb(s), downVerb(s), statusVerb(s), logsVerb(s),
			waitVerb(s), askVerb(s), verifyVerb(s), upgradeVerb(s), uninstallVerb(s), connectVerb(s), modelsVerb(s),
			agentVerb(s), schemaVerb(s), versionVerb(s), neighborsVerb(s), restoreVerb(s), restoreExecVerb(s),
			watchRestoreVerb(s),
			gcVerb(s), cacheVerb(s), bundleVerb(s), measureVerb(s), checkVerb(s),
		},
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   func(_ *cli.Context, err error, _ bool) error { return usage(err.Error()) },
		Action: func(c *cli.Context) error {
			if c.Args().First() == "help" {
				return cli.ShowAppHelp(c)
			}
			if c.Args().Present() {
				return usage(fmt.Sprintf("there is no command %q", c.Args().First()) +
					didYouMean(c.Args().First(), commandNames(c.App.Commands)))
			}
			if s.json {
				return usage("a command is missing")
			}
			cli.ShowAppHelp(c)
			return exitWith(exitUsage)
		},
	}
	cli.VersionPrinter = func(*cli.Context) { fmt.Fprintln(s.out, "slipway", version) }
	s.commands = app.Commands
	guard(s, app.Commands, "")
	return app
}

var (
	libraryHelp = cli.FlagStringer
	zeroDefault = regexp.MustCompile(` \(default: (false|0|0s)\)`)
)

func init() { cli.FlagStringer = flagHelp }

// flagHelp is a line of help. A value that means "left out" is no default: what happens then is in the words.
func flagHelp(flag cli.Flag) string { return zeroDefault.ReplaceAllString(libraryHelp(flag), "") }

// guard puts the checks of every leaf command in front of it.
func guard(s *session, commands []*cli.Command, path string) {
	for _, command := range commands {
		name := strings.TrimSpace(path + " " + command.Name)
		command.OnUsageError = func(_ *cli.Context, err error, _ bool) error {
			s.verb = name
			return usage(flagWords(err.Error(), name, command))
		}
		command.HideHelpCommand = true
		if len(command.Subcommands) > 0 {
			guard(s, command.Subcommands, name)
			command.Action = func(c *cli.Context) error {
				s.verb = name
				names := commandNames(command.Subcommands)
				if given := c.Args().First(); given != "" {
					return usage(fmt.Sprintf("there is no command %q of %s", given, name) + didYouMean(given, names))
				}
				return usage(fmt.Sprintf("%s needs one of: %s", name, strings.Join(names, ", ")))
			}
			continue
		}
		if !slices.ContainsFunc(command.Flags, func(f cli.Flag) bool { return f.Names()[0] == "json" }) {
			command.Flags = append(command.Flags, &cli.BoolFlag{Name: "json",
				Usage: "print exactly one JSON document on standard output"})
		}
		takesArguments := command.ArgsUsage != ""
		command.Before = func(c *cli.Context) error {
			s.verb, s.json, s.verbose = name, c.Bool("json"), c.Bool("verbose")
			s.given = givenFlags(c)
			s.lookHome(c)
			if err := flagsHoldText(c, command); err != nil {
				return err
			}
			for _, a := range c.Args().Slice() {
				if strings.HasPrefix(a, "-") && a != "-" && !s.endOfFlags {
					return usage(fmt.Sprintf("%s comes after an argument, where flags are not read: put flags first",
						a))
				}
			}
			if !takesArguments && c.Args().Present() {
				return usage(fmt.Sprintf("%s takes no argument %q", name, c.Args().First()))
			}
			if v := c.String("events"); v != "" && v != "ndjson" {
				return usage(fmt.Sprintf("--events is %q, and only ndjson is known", v))
			}
			s.events = c.String("events") == "ndjson"
			return nil
		}
	}
}

// commandNames are the names of the commands that the help lists.
func commandNames(commands []*cli.Command) []string {
	var names []string
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

// usage is a mistake in the command line. Its next step names the help of the verb: see session.end.
func usage(what string) error {
	return &failure{Code: exitUsage, What: sentence(what), Step: fault.ReadHelp}
}

// The library's words for flags that it cannot read.
var (
	unknownFlag = regexp.MustCompile(`^flag provided but not defined: -+(.*)$`)
	wrongValue  = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-+([a-z-]+): .*$`)
	noValue     = regexp.MustCompile(`^flag needs an argument: -+(.*)$`)
)

// flagWords says in our words what is wrong with a flag.
func flagWords(text, verb string, command *cli.Command) string {
	if found := unknownFlag.FindStringSubmatch(text); found != nil {
		var names []string
		for _, flag := range command.Flags {
			names = append(names, "--"+flag.Names()[0])
		}
		return fmt.Sprintf("there is no flag --%s for %s", found[1], verb) + didYouMean("--"+found[1], names)
	}
	if found := wrongValue.FindStringSubmatch(text); found != nil {
		return fmt.Sprintf("--%s is %s, and must be %s", found[2], found[1], valueWords(command, found[2]))
	}
	if found := noValue.FindStringSubmatch(text); found != nil {
		return fmt.Sprintf("--%s needs a value", found[1])
	}
	return text
}

// valueWords say what a flag that is no text takes.
func valueWords(command *cli.Command, name string) string {
	for _, flag := range command.Flags {
		if !slices.Contains(flag.Names(), name) {
			continue
		}
		switch flag.(type) {
		case *cli.BoolFlag:
			return "true or false"
		case *cli.DurationFlag:
			return "a time such as 30s or 5m"
		}
	}
	return "a number"
}

// didYouMean ends a sentence with the name that is nearest to what was typed, if one is near.
func didYouMean(typed string, names []string) string {
	if nearest := termtext.Nearest(typed, names); nearest != "" {
		return "; did you mean " + nearest + "?"
	}
	return ""
}

// pathFlags are the flags that name a file or folder; --home is checked where homes are.
var pathFlags = []string{"source", "model-dir", "normalize-file", "out", "plan", "file", "in", "key-file", "key-file-b",
	"tasks"}

// flagsHoldText refuses a flag that was given with nothing in it, and a path that nobody could type or read.
func flagsHoldText(c *cli.Context, command *cli.Command) error {
	for _, flag := range command.Flags {
		name := flag.Names()[0]
		if _, text := flag.(*cli.StringFlag); !text || !c.IsSet(name) || name == "home" {
			continue
		}
		switch value := c.String(name); {
		case value == "":
			return usage(fmt.Sprintf("--%s is empty; leave it out or give it a value", name))
		case slices.Contains(pathFlags, name) && !termtext.IsLine(value):
			return usage(fmt.Sprintf("--%s %q holds a line break or another control character", name, value))
		}
	}
	return nil
}

// words is the printer of an answer that has only words.
func words(lines ...string) func(io.Writer) {
	return func(w io.Writer) {
		for _, line := range lines {
			fmt.Fprintln(w, line)
		}
	}
}

// Flags that several verbs have.
func homeFlag() cli.Flag {
	return &cli.StringFlag{Name: "home", Usage: "folder that everything lives in", EnvVars: []string{"SLIPWAY_HOME"},
		Value: "~/.slipway"}
}

func sourceFlag() cli.Flag {
	return &cli.StringFlag{Name: "source", Usage: "folder of slipway's source, to build the server from",
		EnvVars: []string{"SLIPWAY_SOURCE"}}
}

func modelDirFlag() cli.Flag {
	return &cli.StringFlag{Name: "model-dir", Usage: "folder with weights that are here already: what has the right " +
		"hash is copied, the folder is only read"}
}

func choiceFlags() []cli.Flag {
	return []cli.Flag{
		homeFlag(),
		&cli.StringFlag{Name: "model", Usage: "model to set up (slipway models list); left out: the one that fits"},
		&cli.StringFlag{Name: "profile", Usage: "exact, balanced or long; left out: the first that the server " +
			"can honour"},
		&cli.StringFlag{Name: "memory", Usage: "most memory that model and window may take: 12GB; left out: what " +
			"the machine gives"},
		&cli.StringFlag{Name: "draft", Usage: "what proposes tokens that the model verifies: " +
			profiles.DraftHelp() + "; it changes the speed alone; left out: as the profile says"},
		&cli.IntFlag{Name: "port", Usage: "port of the API; left out: 8008"},
		&cli.IntFlag{Name: "monitor-port", Usage: "port of the monitor page; left out: 8010"},
		sourceFlag(),
		&cli.BoolFlag{Name: "no-launch", Usage: "set everything up and do not start the server"},
		allowStopFlag(), acceptLossFlag(), idleForFlag(),
		modelDirFlag(),
		&cli.BoolFlag{Name: "in-place", Usage: "use weights that are on this machine in place, and copy nothing; " +
			"the folder must stay as it is"},
		&cli.StringFlag{Name: "limit-rate", Usage: "most bytes a second of downloads: 500kB, 20MB; left out: no limit"},
		diskCacheFlag(), normalizeFlag(), allowHostFlag(), allowOriginFlag(),
		&cli.BoolFlag{Name: "accept-told", Usage: "also install files without a proof: nothing but the hub names " +
			"their hashes"},
	}
}

func diskCacheFlag() cli.Flag {
	return &cli.StringFlag{Name: "disk-cache", Usage: "most bytes of conversations kept on disk, to resume them " +
		"after a restart: 20GB, auto, or off; left out: as it is set up, else auto"}
}

func normalizeFlag() cli.Flag {
	return &cli.StringFlag{Name: "normalize-file", Usage: "file of rules that make changing text in system messages " +
		"stable; it is copied; a file of [] ends them"}
}

func allowHostFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "allow-host", Usage: "name that clients may use in the Host header, such as " +
		"host.docker.internal; none ends them; left out: as it is set up"}
}

func allowOriginFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "allow-origin", Usage: "origin whose pages may ask, with a key that is made: " +
		"http://localhost:3000, or app://, vscode-webview:// or tauri:// for all programs of that kind; none ends " +
		"them; left out: as it is set up"}
}

func eventsFlag() cli.Flag {
	return &cli.StringFlag{Name: "events", Usage: "ndjson: progress as one JSON object a line on standard error"}
}
