package operate

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/process"
)

// JobAnswer is the answer of Detach and Wait.
type JobAnswer struct {
	Job      string   `json:"job"`
	Digest   string   `json:"digest"`
	State    string   `json:"state"` // "running", "done", "failed", "ended"
	ExitCode *int     `json:"exit_code"`
	Message  string   `json:"message"`
	Log      string   `json:"log"` // below the home
	Wait     []string `json:"wait"`
	// Answer is what the model said when the job had started it; null before.
	Answer *FirstAnswer `json:"answer"`

	Already bool `json:"-"` // Detach found it running
}

// Class is that of the job's own end; Internal where it ended without saying how.
func (a JobAnswer) Class() fault.Class {
	switch {
	case a.State == apply.JobRunning:
		return fault.OK
	case a.ExitCode != nil:
		return fault.Class(*a.ExitCode)
	}
	return fault.Internal
}

func (o *Operator) jobAnswer(home *apply.Home, j apply.Job) JobAnswer {
	a := JobAnswer{Job: j.ID, Digest: j.Digest, State: j.State(), ExitCode: j.ExitCode, Message: j.Message,
		Log:  j.Log,
		Wait: o.Caller.Command("wait", "--job", j.ID)}
	if first := firstAnswer(home); first != nil && first.Digest == j.Digest && a.State == apply.JobDone {
		a.Answer = first
	}
	return a
}

// DetachInput is the input of Detach.
type DetachInput struct{ ApplyInput } // with Path: the job reads the file again

// Detach starts this program again, in a session of its own, to apply a plan file, and returns.
func (o *Operator) Detach(ctx context.Context, in DetachInput) (JobAnswer, error) {
	prepared, err := o.preparedFile(ctx, in.ApplyInput)
	if err != nil {
		return JobAnswer{}, err
	}
	// The home is made first: the job's record and log need a place.
	home, err := apply.MakeHome(prepared.Plan.Decisions.Home, o.Environment.UserHome)
	if err != nil {
		return JobAnswer{}, err
	}
	defer home.Close()
	digest := prepared.Plan.Digest
	job := apply.Job{ID: strings.TrimPrefix(digest, "sha256:")[:12], Digest: digest,
		Started: time.Now().UTC().Truncate(time.Second)}
	job.Log = "logs/apply-" + job.ID + ".log"
	if running, err := home.ReadJob(job.ID); err == nil && running.State() == apply.JobRunning {
		a := o.jobAnswer(home, running)
		a.Already = true
		return a, nil
	}
	if job.Process, err = o.startJob(home, job, in.args(prepared.Plan.Decisions.Home, job.ID)); err != nil {
		return JobAnswer{}, err
	}
	if err := home.BeginJob(job); err != nil {
		return JobAnswer{}, err
	}
	return o.jobAnswer(home, job), nil
}

// args are the arguments of the program that carries the job out.
func (in DetachInput) args(home, job string) []string {
	args := []string{"apply", "--plan", in.Path, "--digest", in.Digest, "--home", home}
	if in.Source != "" {
		args = append(args, "--source", in.Source)
	}
	if in.ModelDir != "" {
		args = append(args, "--model-dir", in.ModelDir)
	}
	return append(args, "--job", job)
}

func (o *Operator) startJob(home *apply.Home, job apply.Job, args []string) (process.Identity, error) {
	log, err := home.Root.OpenFile(job.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return process.Identity{}, err
	}
	defer log.Close()
	cmd := exec.Command(o.Environment.Executable, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return process.Identity{}, err
	}
	go cmd.Wait() // no zombie while this process still lives
	id, err := process.Observe(cmd.Process.Pid)
	if errors.Is(err, process.ErrGone) {
		err = nil
	}
	return id, err
}

// EndJob notes how a detached apply ended. The job itself calls it.
func (o *Operator) EndJob(id string, code int, message string) error {
	return o.inHome(func(home *apply.Home) error { return home.EndJob(id, code, message) })
}

// WaitInput is the input of Wait.
type WaitInput struct {
	Job   string         `json:"job"`      // empty: the newest
	Limit *time.Duration `json:"limit_ns"` // nil: none
}

// WaitLimitError says that a job still runs.
type WaitLimitError struct {
	Job   string
	Limit time.Duration
}

func (e *WaitLimitError) Error() string {
	return "Job " + e.Job + " still runs after " + e.Limit.String() + "."
}

// Fault names the job.
func (e *WaitLimitError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Timeout, Step: fault.WaitAgain, Args: []string{e.Job}}
}

// pollEvery is how often a job's record is read.
const pollEvery = 100 * time.Millisecond

// Wait waits for the end of a detached apply.
func (o *Operator) Wait(ctx context.Context, in WaitInput) (a JobAnswer, err error) {
	err = o.inHome(func(home *apply.Home) error {
		var job apply.Job
		err := o.during("Waiting for the background job", func() (err error) {
			job, err = awaitJob(ctx, home, in)
			return err
		})
		if err != nil {
			return err
		}
		a = o.jobAnswer(home, job)
		if job.ExitCode == nil {
			a.Message = "The job ended without saying how; the same apply continues where it stopped."
		}
		return nil
	})
	return a, err
}

func awaitJob(ctx context.Context, home *apply.Home, in WaitInput) (apply.Job, error) {
	var deadline <-chan time.Time
	if in.Limit != nil {
		deadline = time.After(*in.Limit)
	}
	for {
		job, err := home.FindJob(in.Job)
		if err != nil {
			return job, &Error{Text: err.Error(), Of: fault.Fault{Class: fault.Usage, Step: fault.StartJob}}
		}
		if job.State() != apply.JobRunning {
			return job, nil
		}
		select {
		case <-ctx.Done():
			return job, context.Cause(ctx)
		case <-deadline:
			return job, &WaitLimitError{job.ID, *in.Limit}
		case <-time.After(pollEvery):
		}
	}
}
