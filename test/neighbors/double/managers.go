package double

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"howett.net/plist"
)

// LMS plays `lms`: ps and load, over the server whose port is in .internal/http-server-config.json.
func LMS() {
	home := filepath.Dir(filepath.Dir(os.Args[0]))
	b, err := os.ReadFile(filepath.Join(home, ".internal", "http-server-config.json"))
	var config struct{ Port int }
	if err != nil || json.Unmarshal(b, &config) != nil || len(os.Args) < 3 {
		os.Exit(1)
	}
	base := "http://127.0.0.1:" + strconv.Itoa(config.Port)
	var r *http.Response
	switch os.Args[1] {
	case "ps":
		r, err = http.Get(base + "/double/ps")
	case "load":
		body := map[string]string{"key": os.Args[2]}
		for rest := os.Args[3:]; len(rest) > 0; rest = rest[1:] {
			switch rest[0] { // of the options of lms, August 2026
			case "-y", "--yes":
				continue
			case "--identifier", "-c", "--context-length", "--parallel", "--ttl", "--gpu":
				if len(rest) > 1 {
					body[strings.TrimLeft(rest[0], "-")] = rest[1]
					rest = rest[1:]
					continue
				}
			}
			fail(1, "error: unknown option '"+rest[0]+"'")
		}
		text, _ := json.Marshal(body)
		r, err = http.Post(base+"/double/load", "application/json", bytes.NewReader(text))
	default:
		os.Exit(1)
	}
	if err != nil || r.StatusCode != 200 {
		os.Exit(1)
	}
	io.Copy(os.Stdout, r.Body)
}

// job is one service of the doubled managers. Its folder is DOUBLE_SERVICES/LABEL, with the files plist (its path),
// supervisor, pid, and "refusals": how many more times bootstrap answers 5.
type job struct{ folder string }

func jobs() []job {
	entries, _ := os.ReadDir(os.Getenv("DOUBLE_SERVICES"))
	var list []job
	for _, e := range entries {
		list = append(list, job{filepath.Join(os.Getenv("DOUBLE_SERVICES"), e.Name())})
	}
	return list
}

func (j job) label() string { return filepath.Base(j.folder) }

func (j job) get(name string) string {
	b, _ := os.ReadFile(filepath.Join(j.folder, name))
	return strings.TrimSpace(string(b))
}

func (j job) set(name, value string) {
	os.WriteFile(filepath.Join(j.folder, name), []byte(value), 0o600)
}

func (j job) number(name string) int { n, _ := strconv.Atoi(j.get(name)); return n }

func (j job) loaded() bool {
	pid := j.number("supervisor")
	return pid > 0 && syscall.Kill(pid, 0) == nil
}

// start runs a supervisor of its own session, which starts the job again whenever it ends.
func (j job) start() {
	supervisor := exec.Command(os.Args[0], "supervise-for-test", j.folder)
	supervisor.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := supervisor.Start(); err != nil {
		fail(1, err.Error())
	}
	j.set("supervisor", strconv.Itoa(supervisor.Process.Pid))
}

// stop ends the supervisor and asks the job to end.
func (j job) stop() {
	syscall.Kill(j.number("supervisor"), syscall.SIGKILL)
	syscall.Kill(j.number("pid"), syscall.SIGTERM)
	j.set("supervisor", "0")
	for range 500 {
		if syscall.Kill(j.number("pid"), 0) != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func supervise(folder string) {
	j := job{folder}
	b, err := os.ReadFile(j.get("plist"))
	var description struct {
		ProgramArguments []string `plist:"ProgramArguments"`
	}
	if err == nil {
		_, err = plist.Unmarshal(b, &description)
	}
	if err != nil || len(description.ProgramArguments) == 0 {
		os.Exit(1)
	}
	for {
		cmd := exec.Command(description.ProgramArguments[0], description.ProgramArguments[1:]...)
		if err := cmd.Start(); err != nil {
			os.Exit(1)
		}
		j.set("pid", strconv.Itoa(cmd.Process.Pid))
		cmd.Wait()
		time.Sleep(50 * time.Millisecond)
	}
}

func fail(code int, text string) {
	fmt.Fprintln(os.Stderr, text)
	os.Exit(code)
}

func find(label string) (job, bool) {
	for _, j := range jobs() {
		if j.label() == label {
			return j, true
		}
	}
	return job{}, false
}

// Launchctl plays list, print, bootout and bootstrap, with launchd's KeepAlive after them.
func Launchctl() {
	args := os.Args[1:]
	switch {
	case len(args) == 2 && args[0] == "supervise-for-test":
		supervise(args[1])
	case len(args) == 1 && args[0] == "list":
		fmt.Println("PID\tStatus\tLabel")
		fmt.Println("-\t0\tcom.example.notrunning")
		for _, j := range jobs() {
			if j.loaded() {
				fmt.Printf("%d\t0\t%s\n", j.number("pid"), j.label())
			}
		}
	case len(args) == 2 && args[0] == "print":
		j, ok := find(filepath.Base(args[1]))
		if !ok || !j.loaded() {
			fail(113, "Could not find service in domain for user gui")
		}
		fmt.Printf("%s = {\n\tactive count = 1\n\tpath = %s\n\tstate = running\n\tpid = %d\n}\n", args[1],
			j.get("plist"), j.number("pid"))
	case len(args) == 2 && args[0] == "bootout":
		j, ok := find(filepath.Base(args[1]))
		if !ok || !j.loaded() {
			fail(3, "Boot-out failed: 3: No such process")
		}
		j.stop()
		j.set("refusals", "3")
	case len(args) == 3 && args[0] == "bootstrap":
		for _, j := range jobs() {
			if j.get("plist") != args[2] {
				continue
			}
			if n := j.number("refusals"); n > 0 {
				j.set("refusals", strconv.Itoa(n-1))
				fail(5, "Bootstrap failed: 5: Input/output error")
			}
			if j.loaded() {
				fail(37, "Bootstrap failed: 37: Operation already in progress")
			}
			j.start()
			return
		}
		fail(2, "no such plist")
	default:
		fail(64, "usage")
	}
}

// Systemctl plays --user stop, start and show.
func Systemctl() {
	args := os.Args[1:]
	if len(args) == 2 && args[0] == "supervise-for-test" {
		supervise(args[1])
	}
	if len(args) == 5 && args[0] == "--user" && args[1] == "show" && args[2] == "--property=MainPID" &&
		args[3] == "--" {
		j, _ := find(args[4]) // of a unit that it does not know systemd says 0, and no error
		fmt.Printf("MainPID=%d\n", j.number("pid"))
		return
	}
	if len(args) != 3 || args[0] != "--user" {
		fail(1, "usage")
	}
	j, ok := find(args[2])
	if !ok {
		fail(5, "Unit "+args[2]+" not loaded.")
	}
	switch args[1] {
	case "stop":
		j.stop()
	case "start":
		if !j.loaded() {
			j.start()
		}
	default:
		fail(1, "usage")
	}
}
