package machine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
)

// Recorded answers from a recording: a text that begins with its source, then sections
//
//	-- platform darwin arm64 16 --
//	-- sysctl --              lines "name: value"
//	-- run /usr/bin/sw_vers --
//	-- status 2 /usr/bin/xcode-select -p --   a run that ends with that status
//	-- file /etc/os-release --
//	-- volume --              a JSON Volume
//	-- metal --               a JSON MetalReport
//	-- env --                 lines "NAME=value"
//	-- look --                lines "name path"
//	-- attribute PATH NAME --
//	-- refused PATH --        opening it is not permitted
//
// What is not recorded does not exist. It serves tests, ours and other packages'.
type Recorded struct {
	Source     string // what the text before the first section says
	goos, arch string
	cores      int
	sysctls    map[string]string
	runs       map[string]recordedRun
	files      map[string]string
	attributes map[string]string
	refused    map[string]bool
	env, look  map[string]string
	volume     *Volume
	metal      *MetalReport
}

type recordedRun struct {
	output string
	status int
}

// ParseRecording reads a recording. Errors name the section.
func ParseRecording(data []byte) (*Recorded, error) {
	r := &Recorded{sysctls: map[string]string{}, runs: map[string]recordedRun{}, files: map[string]string{},
		attributes: map[string]string{}, refused: map[string]bool{}, env: map[string]string{},
		look: map[string]string{}}
	var head string
	var body strings.Builder
	flush := func() error {
		text := body.String()
		body.Reset()
		if head == "" {
			r.Source = strings.TrimSpace(text)
			return nil
		}
		if err := r.section(head, text); err != nil {
			return fmt.Errorf("recording: -- %s --: %w", head, err)
		}
		return nil
	}
	for line := range strings.Lines(string(data)) {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "-- ") && strings.HasSuffix(trimmed, " --") {
			if err := flush(); err != nil {
				return nil, err
			}
			head = strings.TrimSuffix(strings.TrimPrefix(trimmed, "-- "), " --")
			continue
		}
		body.WriteString(line)
	}
	return r, flush()
}

func (r *Recorded) section(head, text string) error {
	kind, rest, _ := strings.Cut(head, " ")
	switch kind {
	case "platform":
		_, err := fmt.Sscan(rest, &r.goos, &r.arch, &r.cores)
		return err
	case "sysctl":
		return pairs(text, ": ", r.sysctls)
	case "env":
		return pairs(text, "=", r.env)
	case "look":
		return pairs(text, " ", r.look)
	case "run":
		r.runs[rest] = recordedRun{output: text}
	case "status":
		status, argv, _ := strings.Cut(rest, " ")
		code, err := strconv.Atoi(status)
		r.runs[argv] = recordedRun{output: text, status: code}
		return err
	case "file":
		r.files[rest] = text
	case "attribute":
		r.attributes[rest] = strings.TrimSpace(text)
	case "refused":
		r.refused[rest] = true
	case "volume":
		r.volume = new(Volume)
		return json.Unmarshal([]byte(text), r.volume)
	case "metal":
		report, err := parseMetal(bytes.TrimSpace([]byte(text)))
		r.metal = &report
		return err
	default:
		return errors.New("is no section of a recording")
	}
	return nil
}

func pairs(text, separator string, into map[string]string) error {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, separator)
		if !ok {
			return fmt.Errorf("line %q has no %q", line, separator)
		}
		into[name] = strings.TrimSpace(value)
	}
	return nil
}

func (r *Recorded) Platform() (string, string, int) { return r.goos, r.arch, r.cores }

func (r *Recorded) Run(_ context.Context, argv ...string) ([]byte, error) {
	run, ok := r.runs[strings.Join(argv, " ")]
	if !ok {
		return nil, &RunError{Argv: argv, Status: -1, Err: fs.ErrNotExist}
	}
	if run.status != 0 {
		return nil, &RunError{Argv: argv, Status: run.status, Output: strings.TrimSpace(run.output),
			Err: fmt.Errorf("exit status %d", run.status)}
	}
	return []byte(run.output), nil
}

func (r *Recorded) ReadFile(path string) ([]byte, error) {
	if r.refused[path] {
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EPERM}
	}
	text, ok := r.files[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

func (r *Recorded) Head(path string, n int) ([]byte, error) {
	data, err := r.ReadFile(path)
	return data[:min(n, len(data))], err
}

func (r *Recorded) Text(name string) (string, error) {
	value, ok := r.sysctls[name]
	if !ok {
		return "", fmt.Errorf("sysctl %s: %w", name, fs.ErrNotExist)
	}
	return value, nil
}

func (r *Recorded) Int(name string) (int64, error) {
	value, err := r.Text(name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(value, 10, 64)
}

func (r *Recorded) Volume(context.Context, string) (Volume, error) {
	if r.volume == nil {
		return Volume{}, fs.ErrNotExist
	}
	return *r.volume, nil
}

func (r *Recorded) Attribute(path, name string) (string, error) {
	value, ok := r.attributes[path+" "+name]
	if !ok {
		return "", fs.ErrNotExist
	}
	return value, nil
}

func (r *Recorded) Look(name string) string { return r.look[name] }
func (r *Recorded) Env(name string) string  { return r.env[name] }

func (r *Recorded) Metal(context.Context) (MetalReport, error) {
	if r.metal == nil {
		return MetalReport{}, errors.New("Metal did not answer")
	}
	return *r.metal, nil
}
