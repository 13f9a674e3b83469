package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"slipway/installer"
	"slipway/installer/apply"
	"slipway/installer/process"
)

// jobAnswer is the data of apply --detach and wait.
type jobAnswer struct {
	Job      string   `json:"job"`
	Digest   string   `json:"digest"`
	State    string   `json:"state"` // "running", "done", "failed", "ended"
	ExitCode *int     `json:"exit_code"`
	Message  string   `json:"message"`
	Log      string   `json:"log"` // below the home
	Wait     []string `json:"wait"`
}

func (s *session) jobAnswer(c *cli.Context, j apply.Job) jobAnswer {
	return jobAnswer{Job: j.ID, Digest: j.Digest, State: j.State(), ExitCode: j.ExitCode, Message: j.Message, Log: j.Log,
		Wait: s.argv(append([]string{"wait", "--job", j.ID}, homeArgs(c)...)...)}
}

// detach starts this program again in a session of its own and returns. The home is made first: the job's record and
// log need a place.
func detach(s *session, c *cli.Context, p installer.Prepared) error {
	home, err := apply.MakeHome(p.Plan.Decisions.Home, s.place.UserHome)
	if err != nil {
		return err
	}
	defer home.Close()
	job := apply.Job{ID: jobID(p.Plan.Digest), Digest: p.Plan.Digest, Started: time.Now().UTC().Truncate(time.Second)}
	job.Log = "logs/apply-" + job.ID + ".log"
	if running, err := home.ReadJob(job.ID); err == nil && running.State() == apply.JobRunning {
		return s.result(exitOK, s.jobAnswer(c, running), words(fmt.Sprintf("Job %s runs already.", running.ID)))
	}
	log, err := home.Root.OpenFile(job.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append(applyArgs(c), "--job", job.ID)
	cmd := exec.Command(s.place.Executable, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait() // no zombie while this process still lives
	if job.Process, err = process.Observe(cmd.Process.Pid); err != nil && err != process.ErrGone {
		return err
	}
	if err := home.BeginJob(job); err != nil {
		return err
	}
	return s.result(exitOK, s.jobAnswer(c, job), words(
		fmt.Sprintf("Job %s works in the background.", job.ID),
		"Wait for it: "+s.printed(c, "wait", "--job", job.ID)))
}

// runJob is the detached half: it applies the plan and notes how that ended.
func runJob(s *session, c *cli.Context) error {
	err := applyPlan(s, c)
	code, message := exitOK, ""
	if err != nil {
		var f *failure
		if status, ok := err.(exitStatus); ok {
			code = int(status)
		} else {
			f = explain(err)
			code, message = f.code, f.Error()
		}
	}
	home, openErr := s.openHome(c.String("home"))
	if openErr != nil {
		return err
	}
	defer home.Close()
	if noteErr := home.EndJob(c.String("job"), code, message); noteErr != nil && err == nil {
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
			home, err := s.openHome(c.String("home"))
			if err != nil {
				return err
			}
			defer home.Close()
			job, err := awaitJob(s, c, home)
			if err != nil {
				return err
			}
			code := exitInternal
			if job.ExitCode != nil {
				code = *job.ExitCode
			}
			answer := s.jobAnswer(c, job)
			if job.ExitCode == nil {
				answer.Message = "The job ended without saying how; the same apply goes on where it stopped."
			}
			return s.result(code, answer, words(fmt.Sprintf("Job %s: %s (exit code %d). %s", job.ID, answer.State, code, answer.Message)))
		},
	}
}

func awaitJob(s *session, c *cli.Context, home *apply.Home) (apply.Job, error) {
	var deadline <-chan time.Time
	if c.IsSet("timeout") {
		deadline = time.After(c.Duration("timeout"))
	}
	for {
		job, err := home.FindJob(c.String("job"))
		if err != nil {
			return job, &failure{code: exitUsage, what: sentence(err.Error()), then: "Start one with slipway apply --detach."}
		}
		if job.State() != apply.JobRunning {
			return job, nil
		}
		select {
		case <-s.ctx.Done():
			return job, stopCause(s)
		case <-deadline:
			return job, &failure{code: exitTimeout, what: fmt.Sprintf("Job %s still runs after %s.", job.ID, c.Duration("timeout")),
				then: "It goes on; wait again.", next: append([]string{"wait", "--job", job.ID}, homeArgs(c)...)}
		case <-time.After(100 * time.Millisecond):
		}
	}
}
