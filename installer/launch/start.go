package launch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"slipway/fault"
	notes "slipway/installer/neighbor/record"
	"slipway/installer/process"
	"slipway/wire"
)

// CrashError: the server ended before it was ready.
type CrashError struct {
	Exit  string   // in words
	Lines []string // the last of its log
}

func (e *CrashError) Error() string {
	s := "slipway-server ended before it was ready (" + e.Exit + ")"
	if len(e.Lines) == 0 {
		return s + "; it wrote nothing to its log"
	}
	return s + "; the last lines of its log: " + strings.Join(e.Lines, " | ")
}

// Fault: see package fault.
func (e *CrashError) Fault() fault.Fault {
	return fault.Fault{Class: fault.NotReady, Step: fault.ReadLog}
}

// SlowError: the server lives and did not become ready in time. It was stopped.
type SlowError struct{ After time.Duration }

func (e *SlowError) Error() string {
	return fmt.Sprintf("slipway-server was not ready after %s and was stopped", e.After.Round(time.Second))
}

// Fault: see package fault.
func (e *SlowError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Timeout, Step: fault.ReadLog}
}

// UnfitError: the server that was built says that it cannot do what was planned.
type UnfitError struct{ Why string }

func (e *UnfitError) Error() string { return e.Why }

// Fault: see package fault.
func (e *UnfitError) Fault() fault.Fault {
	return fault.Fault{Class: fault.NotReady, Step: fault.OtherProfile}
}

// Start starts a server, or takes over one of the same settings that lives already, and returns when it is ready. A
// server of ours with other settings is stopped first. Errors: *PortError, *CrashError, *SlowError, *UnfitError.
func Start(ctx context.Context, root *os.Root, homePath string, want Settings, attached bool) (Record, error) {
	status, err := Look(ctx, root, homePath)
	if err != nil {
		return Record{}, err
	}
	if status.Living() && status.Serves(homePath, want) {
		record, err := awaitOther(ctx, root, homePath, want)
		if !errors.Is(err, errHung) {
			return record, err
		}
		// It is replaced by a new one.
	}
	program := filepath.Join(homePath, filepath.FromSlash(want.Program))
	if err := checkProbe(ctx, program, want); err != nil {
		return Record{}, err // before anything is stopped: an unfit server replaces nothing
	}
	if old := status.Record.Settings; !status.Living() || want.MonitorPort != old.MonitorPort &&
		want.MonitorPort != old.Port {
		if use := LookMonitorPort(ctx, want.MonitorPort); use.Taken {
			return Record{}, &PortError{Port: want.MonitorPort, Use: use, Monitor: true}
		}
	}
	if status.Living() {
		if _, err := Stop(ctx, root, homePath); err != nil {
			return Record{}, err
		}
	}
	if use := LookPort(ctx, want.Port); use.Taken {
		return Record{}, &PortError{Port: want.Port, Use: use}
	}
	alive, free, err := takeAlive(root)
	if err != nil {
		return Record{}, err
	}
	if !free {
		return Record{}, ErrUnknownServer
	}
	defer alive.Close()
	log, err := OpenLog(root)
	if err != nil {
		return Record{}, err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return Record{}, err
	}
	record := Record{LaunchID: newLaunchID(), Settings: want, Started: time.Now().UTC().Truncate(time.Second),
		Attached: attached}
	if err := setAside(root); err != nil {
		return Record{}, err
	}
	if err := writeRecord(root, record); err != nil {
		return Record{}, err
	}
	if err := notes.RemoveStoppedBy(root); err != nil {
		return Record{}, err
	}
	cmd := exec.Command(program, arguments(want, homePath, record.LaunchID)...)
	cmd.Dir, cmd.Env = homePath, append(environment(), logVariable+"="+filepath.Join(homePath,
		filepath.FromSlash(LogPath)))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{alive} // the living server holds the lock, whoever is killed
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		removeRecord(root)
		return Record{}, err
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	id, err := process.Observe(cmd.Process.Pid)
	if err == nil {
		record.Process = id
		err = writeRecord(root, record)
	}
	if err != nil && !errors.Is(err, process.ErrGone) {
		cmd.Process.Kill() // our own child, not yet known to anybody
		<-ended
		removeRecord(root)
		return Record{}, err
	}
	return awaitOwn(ctx, root, homePath, record, cmd, ended, info.Size())
}

// awaitOwn waits for the child that was just started.
func awaitOwn(ctx context.Context, root *os.Root, homePath string, record Record, cmd *exec.Cmd, ended <-chan struct{},
	logOffset int64) (Record, error) {
	limit := loadLimit(record.Settings)
	deadline := time.Now().Add(limit)
	for {
		health, err := askHealth(ctx, record.Settings.Port)
		if err == nil && health.Ready && health.LaunchID == record.LaunchID && health.PID == record.Process.PID {
			return record, nil
		}
		select {
		case <-ended:
			removeRecord(root)
			return Record{}, &CrashError{Exit: cmd.ProcessState.String(), Lines: crashLines(root, logOffset, 10)}
		case <-ctx.Done():
			stopQuietly(root, homePath)
			return Record{}, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			stopQuietly(root, homePath)
			return Record{}, &SlowError{limit}
		}
	}
}

// errHung: the server that lives has not answered for HungLimit.
var errHung = errors.New("our server runs and does not answer")

// HungLimit is how long a living server that takes connections may leave them unanswered before a start replaces it:
// ten times the time that one question about its health may take.
const HungLimit = 20 * time.Second

// awaitOther waits for a server of ours that another launcher started. Errors: errHung.
func awaitOther(ctx context.Context, root *os.Root, homePath string, want Settings) (Record, error) {
	limit := loadLimit(want)
	deadline, answered := time.Now().Add(limit), time.Now()
	for {
		status, err := Look(ctx, root, homePath)
		if err != nil {
			return Record{}, err
		}
		switch status.State {
		case Running:
			status.Record.Settings = want // a record that was lost is written again
			if err := setAside(root); err != nil {
				return Record{}, err
			}
			return status.Record, writeRecord(root, status.Record)
		case Hung:
			if time.Since(answered) > HungLimit {
				return Record{}, errHung
			}
		case Starting:
			answered = time.Now()
		default:
			removeRecord(root)
			return Record{}, &CrashError{Exit: "while another run waited for it", Lines: crashLines(root, 0, 10)}
		}
		select {
		case <-ctx.Done():
			return Record{}, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			stopQuietly(root, homePath)
			return Record{}, &SlowError{limit}
		}
	}
}

func stopQuietly(root *os.Root, homePath string) {
	ctx, cancel := context.WithTimeout(context.Background(), StopLimit+killLimit)
	defer cancel()
	Stop(ctx, root, homePath)
}

// loadLimit is how long loading may take: one minute, and the weights at 100 MB/s, slower than an external disk.
func loadLimit(s Settings) time.Duration {
	return time.Minute + time.Duration(s.ModelBytes/100_000_000)*time.Second
}

func (s Settings) modelPath(homePath string) string {
	if filepath.IsAbs(s.ModelFolder) {
		return s.ModelFolder
	}
	return filepath.Join(homePath, filepath.FromSlash(s.ModelFolder))
}

func arguments(s Settings, homePath, launchID string) []string {
	args := []string{"serve",
		"--model", s.modelPath(homePath),
		"--device", s.Device, "--kv", s.KVFormat, "--host", s.Host, "--port", strconv.Itoa(s.Port),
		"--window", strconv.Itoa(s.WindowTokens), "--parallel", strconv.Itoa(s.Parallel),
		"--launch-id", launchID, "--model-id", s.ModelID, "--revision", s.Revision, "--profile-name", s.Profile,
		"--cache-memory", strconv.FormatInt(s.CacheMemoryBytes, 10),
	}
	if s.MonitorPort != 0 {
		args = append(args, "--monitor-port", strconv.Itoa(s.MonitorPort), "--launch-file",
			filepath.Join(homePath, filepath.FromSlash(wire.LaunchPath)))
	}
	if s.Draft != "" && s.Draft != "none" {
		args = append(args, "--draft", s.Draft)
	}
	if s.DraftFolder != "" {
		args = append(args, "--draft-dir", filepath.Join(homePath, filepath.FromSlash(s.DraftFolder)))
	}
	if s.CacheDisk != "" {
		args = append(args, "--cache-disk", filepath.Join(homePath, filepath.FromSlash(s.CacheDisk)),
			"--cache-disk-bytes", strconv.FormatInt(s.CacheDiskBytes, 10), "--cache-disk-daily-bytes",
			strconv.FormatInt(s.CacheDiskDailyBytes, 10))
	}
	if s.NormalizeFile != "" {
		args = append(args, "--normalize-file", filepath.Join(homePath, filepath.FromSlash(s.NormalizeFile)))
	}
	if s.AllowHosts != "" {
		args = append(args, "--allow-host", s.AllowHosts)
	}
	if s.AllowOrigins != "" {
		args = append(args, "--allow-origin", s.AllowOrigins, "--origin-key-file",
			filepath.Join(homePath, filepath.FromSlash(s.OriginKey)))
	}
	return args
}

// environment is what the server gets of ours: no tokens, no proxies, nothing that it does not need.
func environment() []string {
	var env []string
	for _, name := range []string{"HOME", "PATH", "TMPDIR", "LANG", "LC_ALL", "USER", "LOGNAME", "TZ", "GOMAXPROCS",
		"GODEBUG"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func newLaunchID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// AskProbe runs the server's probe, at most ten seconds.
func AskProbe(ctx context.Context, program string) (wire.Probe, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "probe")
	cmd.Env, cmd.WaitDelay = environment(), time.Second
	out, err := cmd.Output()
	if err != nil {
		return wire.Probe{}, fmt.Errorf("slipway-server probe: %w", err)
	}
	var p wire.Probe
	if err := json.Unmarshal(out, &p); err != nil {
		return wire.Probe{}, fmt.Errorf("slipway-server probe: %w", err)
	}
	return p, nil
}

// checkProbe compares what was planned with what the server says it can do. Errors: *UnfitError.
func checkProbe(ctx context.Context, program string, want Settings) error {
	p, err := AskProbe(ctx, program)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &UnfitError{err.Error()}
	}
	device := want.Device
	if device == "auto" {
		device = "metal" // what it was planned for; on the CPU the server keeps a wider format
	}
	for _, c := range []struct {
		what, wanted string
		has          []string
	}{
		{"KV format on " + device, want.KVFormat, p.Capabilities.On(device).KVFormats},
		{"prefill policy", want.PrefillPolicy, p.Capabilities.PrefillPolicies},
		{"draft", want.Draft, p.Capabilities.Drafts},
		{"device", want.Device, p.Capabilities.Devices},
	} {
		if c.wanted != "" && c.wanted != "auto" && !slices.Contains(c.has, c.wanted) {
			return &UnfitError{fmt.Sprintf("the plan wants %s %s, and this server has %s", c.what, c.wanted,
				strings.Join(c.has, ", "))}
		}
	}
	if cap := p.RecommendedMaxWorkingSet; cap != nil && want.BudgetBytes > *cap {
		return &UnfitError{fmt.Sprintf("the plan counted on %d bytes of Metal memory, and the device says %d",
			want.BudgetBytes, *cap)}
	}
	return nil
}
