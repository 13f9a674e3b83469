package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"slipway/atomicfile"
	"slipway/installer/process"
)

// jobsDir holds a record for each detached apply, below the home.
const jobsDir = "state/jobs"

// Job is a detached apply. Its starter writes the first record, it writes the end itself into a file of its own, so
// that neither overwrites the other.
type Job struct {
	ID      string           `json:"id"` // 12 hex digits of the plan's digest
	Digest  string           `json:"digest"`
	Process process.Identity `json:"process"`
	Started time.Time        `json:"started"`
	Log     string           `json:"log"` // below the home

	ExitCode *int   `json:"exit_code,omitempty"` // from the second file
	Message  string `json:"message,omitempty"`
}

type jobEnd struct {
	Process  process.Identity `json:"process"`
	ExitCode int              `json:"exit_code"`
	Message  string           `json:"message"`
}

// States of a job.
const (
	JobRunning = "running"
	JobDone    = "done"
	JobFailed  = "failed"
	JobEnded   = "ended" // it is gone and did not say how: killed, or the machine went down
)

// State says how the job is.
func (j Job) State() string {
	switch {
	case j.ExitCode != nil && *j.ExitCode == 0:
		return JobDone
	case j.ExitCode != nil:
		return JobFailed
	}
	if now, err := process.Observe(j.Process.PID); err == nil && now.SameProcess(j.Process) {
		return JobRunning
	}
	return JobEnded
}

// BeginJob notes a started job.
func (h *Home) BeginJob(j Job) error {
	if err := h.Root.Mkdir(jobsDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	j.ExitCode, j.Message = nil, ""
	return h.writeJSON(path.Join(jobsDir, j.ID+".json"), j)
}

// EndJob is called by the job itself.
func (h *Home) EndJob(id string, exitCode int, message string) error {
	if err := checkJobID(id); err != nil {
		return err
	}
	if err := h.Root.Mkdir(jobsDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	self, err := process.Self()
	if err != nil {
		return err
	}
	return h.writeJSON(path.Join(jobsDir, id+".end.json"), jobEnd{self, exitCode, message})
}

// ReadJob reads a job. Errors: fs.ErrNotExist.
func (h *Home) ReadJob(id string) (Job, error) {
	if err := checkJobID(id); err != nil {
		return Job{}, err
	}
	var j Job
	data, err := h.Root.ReadFile(path.Join(jobsDir, id+".json"))
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	if err != nil {
		return Job{}, err
	}
	var end jobEnd
	data, err = h.Root.ReadFile(path.Join(jobsDir, id+".end.json"))
	// The end of an earlier run of the same plan is not the end of this one.
	if err == nil && json.Unmarshal(data, &end) == nil && end.Process.SameProcess(j.Process) {
		j.ExitCode, j.Message = &end.ExitCode, end.Message
	}
	return j, nil
}

// FindJob reads a job, the newest when id is empty.
func (h *Home) FindJob(id string) (Job, error) {
	if id != "" {
		j, err := h.ReadJob(id)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("there is no job %s", id)
		}
		return j, err
	}
	names, err := readNames(h.Root, jobsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Job{}, err
	}
	var newest Job
	for _, name := range names {
		id, ok := strings.CutSuffix(name, ".json")
		if !ok || strings.Contains(id, ".") {
			continue
		}
		if j, err := h.ReadJob(id); err == nil && (newest.ID == "" || j.Started.After(newest.Started)) {
			newest = j
		}
	}
	if newest.ID == "" {
		return newest, errors.New("there is no background job")
	}
	return newest, nil
}

func checkJobID(id string) error {
	if len(id) != 12 || strings.Trim(id, "0123456789abcdef") != "" {
		return fmt.Errorf("%q is no job id (12 hex digits)", id)
	}
	return nil
}

func (h *Home) writeJSON(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(h.Root, name, append(data, '\n'), 0o600)
}
