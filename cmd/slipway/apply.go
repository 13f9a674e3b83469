package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/urfave/cli/v2"

	"slipway/installer/answers"
	"slipway/installer/operate"
	"slipway/installer/plan"
)

func applyVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "apply", Usage: "do exactly the plan of a file, by its digest",
		Flags: []cli.Flag{homeFlag(),
			&cli.StringFlag{Name: "plan", Usage: "file that slipway plan --out wrote"},
			&cli.StringFlag{Name: "digest", Usage: "digest of the plan that the person saw and agreed to"},
			sourceFlag(),
			modelDirFlag(),
			&cli.BoolFlag{Name: "detach", Usage: "return at once; slipway wait waits for the end"},
			&cli.BoolFlag{Name: "set-aside-journal", Usage: "move a damaged journal out of the way first"},
			&cli.StringFlag{Name: "job", Hidden: true},
			eventsFlag()},
		Action: func(c *cli.Context) error {
			if id := c.String("job"); id != "" {
				return s.runJob(c, id)
			}
			return s.applyPlan(c)
		},
	}
}

func (s *session) applyPlan(c *cli.Context) error {
	in := operate.ApplyInput{Digest: c.String("digest"), Source: c.String("source"),
		SetAsideJournal: c.Bool("set-aside-journal")}
	var err error
	if path := c.String("plan"); path != "" {
		in.Path = spelledOut(path)
		if in.File, err = readBounded(path, plan.MaxFileBytes); err != nil {
			return &failure{Code: exitUsage, What: "The plan file cannot be read: " + err.Error() + "."}
		}
	}
	if in.ModelDir, err = modelDirOf(c); err != nil {
		return err
	}
	s.same = applyArgs(c)
	if !c.Bool("detach") {
		answer, err := s.operator(c).Apply(s.ctx, in)
		return s.setupAnswer(c, answer, err)
	}
	job, err := s.operator(c).Detach(s.ctx, operate.DetachInput{ApplyInput: in})
	return s.answer(job, err, func(w io.Writer) {
		if job.Already {
			fmt.Fprintf(w, "Job %s runs already.\n", job.Job)
			return
		}
		fmt.Fprintf(w, "Job %s works in the background.\nWait for it: %s\n", job.Job,
			s.printed(c, "wait", "--job", job.Job))
	})
}

// runJob is the detached half: it applies the plan and notes how that ended.
func (s *session) runJob(c *cli.Context, id string) error {
	err := s.applyPlan(c)
	code, message := exitOK, ""
	if status, ok := errors.AsType[exitStatus](err); ok {
		code = int(status)
	} else if err != nil {
		f := explain(err)
		code, message = f.Code, f.Error()
	}
	if noteErr := s.operator(c).EndJob(id, code, message); noteErr != nil && err == nil {
		return noteErr
	}
	return err
}

func waitVerb(s *session) *cli.Command {
	return &cli.Command{
		Name: "wait", Usage: "wait for a detached apply and end with its exit code",
		Flags: []cli.Flag{homeFlag(), &cli.StringFlag{Name: "job", Usage: "job id; left out: the newest"},
			&cli.DurationFlag{Name: "timeout", Usage: "give up after this long (30s, 10m); left out: never"}},
		Action: func(c *cli.Context) error {
			in := operate.WaitInput{Job: c.String("job")}
			if c.IsSet("timeout") {
				limit := c.Duration("timeout")
				in.Limit = &limit
			}
			answer, err := s.operator(c).Wait(s.ctx, in)
			return s.answer(answer, err, func(w io.Writer) {
				fmt.Fprintf(w, "Job %s: %s (exit code %d). %s\n", answer.Job, answer.State, answers.ClassOf(answer),
					answer.Message)
				printFirstAnswer(w, answer.Answer)
			})
		},
	}
}

// readBounded reads one byte more than a file may have, of a plain file only: a device or a pipe has no end.
func readBounded(name string, most int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is no plain file", name)
	}
	return io.ReadAll(io.LimitReader(f, most+1))
}

func applyArgs(c *cli.Context) []string {
	args := append([]string{"apply", "--plan", spelledOut(c.String("plan")), "--digest", c.String("digest")},
		homeArgs(c)...)
	for _, name := range []string{"source", "model-dir"} {
		if c.IsSet(name) {
			args = append(args, "--"+name, spelledOut(c.String(name)))
		}
	}
	return args
}
