package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/checks/record"
)

// conclude makes the report of all answers, and the files beside it by their endings. It never returns nil.
type conclude func(answers []record.Answer, report *record.Report) (beside map[string][]byte)

// runCheck carries a check out: it goes on where an unfinished run of the same setup was.
func (s *session) runCheck(c *cli.Context, setup record.Setup, tasks []record.Task, end conclude) (record.Report, error) {
	folder, root, err := s.checkFolder(c)
	if err != nil {
		return record.Report{}, err
	}
	defer root.Close()
	name := s.runName(c, setup)
	if !record.GoodName(name) {
		return record.Report{}, usage(fmt.Sprintf("--name is %q, and a name has small letters, digits, dots, dashes and underscores", name))
	}
	book, err := record.Open(root, name, setup, c.Bool("restart"), time.Now())
	if err != nil {
		return record.Report{}, err
	}
	defer book.Close()
	if n := book.Done(); n > 0 {
		s.talk("Going on with %s: %d of %d tasks are done.", name, n, len(tasks))
	}
	answers, err := book.Run(s.ctx, tasks, s.checkProgress(setup.Check))
	if err != nil {
		return record.Report{}, s.unfinished(err, folder, name)
	}
	report := record.Report{Setup: setup, Scores: record.ScoresByGroup(answers), Findings: record.FindingsOf(answers), Notes: []string{}, Doubts: record.DoubtsOf(answers)}
	beside := map[string][]byte{}
	if end != nil {
		beside = end(answers, &report)
	}
	raw, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return report, err
	}
	beside[".json"] = append(bytes.TrimSpace(raw), '\n')
	base, err := book.Finish(time.Now(), beside)
	if err != nil {
		return report, err
	}
	report.Answers = filepath.Join(folder, base+".jsonl")
	if beside[".png"] != nil {
		report.Picture = filepath.Join(folder, base+".png")
	}
	return report, nil
}

// runName is the name that a run's files begin with.
func (s *session) runName(c *cli.Context, setup record.Setup) string {
	name := c.String("name")
	switch {
	case s.verb == "check all" && name == "":
		name = "all-" + setup.Check
	case s.verb == "check all":
		name += "-" + setup.Check
	case name == "":
		name = setup.Check
	}
	if setup.Options["side"] != "" {
		name += "-" + setup.Options["side"]
	}
	if setup.Quick {
		name += "-quick"
	}
	return name
}

// checkFolder opens the folder of answers, which nobody else may read: they hold what models wrote.
func (s *session) checkFolder(c *cli.Context) (string, *os.Root, error) {
	if out := c.String("out"); out != "" {
		if err := os.MkdirAll(out, 0o700); err != nil {
			return "", nil, usage("--out: " + reasonOf(err))
		}
		root, err := os.OpenRoot(out)
		if err != nil {
			return "", nil, usage("--out: " + reasonOf(err))
		}
		abs, err := filepath.Abs(out)
		return abs, root, err
	}
	home, err := s.operator(c).OpenHome()
	if err != nil {
		if f := explain(err); f.code == exitNotReady {
			return "", nil, &failure{code: exitUsage, what: "Nothing is set up here, so there is no home to keep the answers in.", then: "Give a folder with --out."}
		}
		return "", nil, err
	}
	defer home.Close()
	if err := home.Root.MkdirAll("checks", 0o700); err != nil {
		return "", nil, err
	}
	root, err := home.Root.OpenRoot("checks")
	return filepath.Join(home.Path, "checks"), root, err
}

// unfinished gives a run that broke the words that it is kept.
func (s *session) unfinished(err error, folder, name string) error {
	if _, mine := errors.AsType[*record.OtherSetupError](err); mine {
		return err
	}
	f := explain(err)
	kept := *f
	kept.then = strings.TrimSpace(kept.then + " What was answered is kept in " + filepath.Join(folder, name+".partial.jsonl") + "; the same command goes on.")
	return &kept
}

// checkProgress talks at the first task, at the last, and about every ten seconds.
func (s *session) checkProgress(check string) func(done, of int) {
	last := time.Time{}
	return func(done, of int) {
		if now := time.Now(); done == of && !last.IsZero() || now.Sub(last) > 10*time.Second {
			last = now
			s.talk("%s: %d of %d", check, done, of)
		}
	}
}
