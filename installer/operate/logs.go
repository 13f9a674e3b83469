package operate

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"slipway/fault"
	"slipway/installer/apply"
	"slipway/installer/launch"
	"slipway/installer/plan"
	"slipway/termtext"
)

// MaxLogLines is how many lines Logs can be asked for.
const MaxLogLines = 100_000

// LogsInput asks for the end of the server's log.
type LogsInput struct {
	Lines int `json:"lines"` // 1 to MaxLogLines
}

// LogsAnswer is the answer of Logs.
type LogsAnswer struct {
	File  string   `json:"file"` // below the home
	Lines []string `json:"lines"`
}

// Logs reads the last lines of the server's log, control characters made visible. Errors: a usage *Error,
// apply.ErrNoHome.
func (o *Operator) Logs(in LogsInput) (a LogsAnswer, err error) {
	if err := in.check(); err != nil {
		return a, err
	}
	a = LogsAnswer{plan.ServerLog, []string{}}
	err = o.inUsedHome(func(home *apply.Home) error {
		a.Lines = append(a.Lines, launch.LastLines(home.Root, 0, in.Lines)...)
		return nil
	})
	return a, err
}

func (in LogsInput) check() error {
	if in.Lines >= 1 && in.Lines <= MaxLogLines {
		return nil
	}
	return &Error{Text: fmt.Sprintf("--lines is %d, and must be from 1 to %d", in.Lines, MaxLogLines),
		Of: fault.Fault{Class: fault.Usage, Step: fault.ReadHelp}}
}

// FollowInput is the input of FollowLog and Attach.
type FollowInput struct {
	LogsInput // to begin with
	// Text gets what the log gains, control characters made visible. An error ends the verb.
	Text func(text string) error
}

// FollowLog gives the end of the server's log, then what it gains, until the context ends, which is no error.
func (o *Operator) FollowLog(ctx context.Context, in FollowInput) error {
	if err := in.check(); err != nil {
		return err
	}
	return o.inHome(func(home *apply.Home) error {
		log, err := newFollower(home.Root, in)
		for err == nil && ctx.Err() == nil {
			if err = log.more(); err == nil {
				pause(ctx)
			}
		}
		return err
	})
}

// ErrServerEnded says that a server of ours ended by itself.
var ErrServerEnded = fault.New(fault.Fault{Class: fault.NotReady, Step: fault.ReadLog}, "the server ended by itself")

// Attach follows the log and rotates it until the server ends, or until the context does, which stops the server.
func (o *Operator) Attach(ctx context.Context, in FollowInput) error {
	if err := in.check(); err != nil {
		return err
	}
	return o.inHome(func(home *apply.Home) error {
		log, err := newFollower(home.Root, in)
		for err == nil {
			pause(ctx)
			var ended bool
			if ended, err = o.serverEnded(ctx, home); ended {
				return err
			}
			if err == nil {
				err = log.more()
			}
			if ctx.Err() != nil {
				o.Caller.Say("Stopping the server.")
				_, err := launch.Stop(context.WithoutCancel(ctx), home.Root, home.Path)
				log.more()
				return err
			}
		}
		return err
	})
}

// serverEnded rotates the log and looks whether the server still runs.
func (o *Operator) serverEnded(ctx context.Context, home *apply.Home) (bool, error) {
	if err := launch.RotateLog(home.Root, launch.LogLimitBytes); err != nil {
		return false, err
	}
	status, err := launch.Look(context.WithoutCancel(ctx), home.Root, home.Path)
	switch {
	case err != nil:
		return false, err
	case status.State == launch.Stopped:
		o.Caller.Say("The server was stopped by another command.")
		return true, nil
	case status.State == launch.Crashed:
		return true, ErrServerEnded
	}
	return false, nil
}

// pause waits a moment between two looks at a log, or until the context ends.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(300 * time.Millisecond):
	}
}

// follower reads what a log gains.
type follower struct {
	root   *os.Root
	text   func(string) error
	offset int64
}

// newFollower gives the last lines of the log and continues from its end.
func newFollower(root *os.Root, in FollowInput) (*follower, error) {
	f := &follower{root: root, text: in.Text}
	if info, err := root.Stat(plan.ServerLog); err == nil {
		f.offset = info.Size()
	}
	for _, line := range launch.LastLines(root, 0, in.Lines) {
		if err := in.Text(line + "\n"); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// more gives what the log has gained. A log that cannot be read has gained nothing.
func (f *follower) more() error {
	log, err := f.root.Open(plan.ServerLog)
	if err != nil {
		return nil
	}
	defer log.Close()
	if info, err := log.Stat(); err != nil || info.Size() < f.offset {
		f.offset = 0 // it was rotated
	}
	data, err := io.ReadAll(io.NewSectionReader(log, f.offset, 1<<20))
	if err != nil || len(data) == 0 {
		return nil
	}
	f.offset += int64(len(data))
	return f.text(termtext.Text(string(data)))
}
