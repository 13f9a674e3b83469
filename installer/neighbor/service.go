package neighbor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"slipway/installer/neighbor/record"
)

// ServiceError is a service manager's refusal.
type ServiceError struct {
	Program, Verb string
	Code          int // exit code; -1 where it did not run
	Text          string
}

func (e *ServiceError) Error() string {
	return fmt.Sprintf("%s %s failed (exit %d): %s", e.Program, e.Verb, e.Code, e.Text)
}

// runService executes a manager with a plain environment and returns its output.
func runService(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return out, nil
	}
	failed := &ServiceError{Program: filepath.Base(program), Verb: args[0], Code: -1, Text: plain(string(out))}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		failed.Code = exit.ExitCode()
	} else {
		failed.Text = plain(err.Error())
	}
	return out, failed
}

// Exit codes of launchctl: a job that is not loaded makes bootout fail with 3 or 5; bootstrap fails with 5 for about
// five seconds after a bootout, and with 37 or 17 where the job is loaded already.
func launchctlNotLoaded(err error) bool {
	var failed *ServiceError
	return errors.As(err, &failed) && (failed.Code == 3 || failed.Code == 5 || failed.Code == 113)
}

func launchctlLoaded(err error) bool {
	var failed *ServiceError
	return errors.As(err, &failed) && (failed.Code == 17 || failed.Code == 37)
}

// stopService asks the manager to stop the job. Its registration stays: bootout leaves the plist where it is, and
// `systemctl stop` leaves the unit enabled.
func (s *System) stopService(ctx context.Context, r record.Record) error {
	switch r.Channel {
	case record.ChannelLaunchd, record.ChannelBrew:
		_, err := s.service(ctx, s.Launchctl, "bootout", s.domain()+"/"+r.Label)
		if err != nil && !launchctlNotLoaded(err) {
			return err
		}
		return nil
	case record.ChannelSystemd:
		_, err := s.service(ctx, s.Systemctl, "--user", "stop", r.Unit)
		return err
	}
	panic("stopService for channel " + r.Channel)
}

// startService starts the job again. Whether that worked is judged by the server's answer, not by an exit code.
func (s *System) startService(ctx context.Context, r record.Record) error {
	switch r.Channel {
	case record.ChannelLaunchd, record.ChannelBrew:
		for end := time.Now().Add(s.Timing.Services); ; time.Sleep(s.Timing.Poll) {
			_, err := s.service(ctx, s.Launchctl, "bootstrap", s.domain(), r.Plist)
			if err == nil || launchctlLoaded(err) {
				return nil
			}
			if time.Now().After(end) || ctx.Err() != nil {
				return err
			}
		}
	case record.ChannelSystemd:
		_, err := s.service(ctx, s.Systemctl, "--user", "start", r.Unit)
		return err
	}
	panic("startService for channel " + r.Channel)
}
