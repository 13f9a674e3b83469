package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ticksPerSecond is USER_HZ, fixed at 100 in the kernel's interface on every architecture that Go supports.
const ticksPerSecond = 100

// bootID changes with every boot.
var bootID = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
})

var bootTime = sync.OnceValues(func() (time.Time, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}, err
	}
	for line := range strings.Lines(string(b)) {
		if seconds, ok := strings.CutPrefix(line, "btime "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(seconds), 10, 64)
			return time.Unix(n, 0), err
		}
	}
	return time.Time{}, errors.New("/proc/stat has no btime")
})

// stat is what we need of /proc/PID/stat.
type stat struct {
	state      byte
	parent     int
	cpuTicks   int64
	startTicks int64
}

// parseStat reads the fields after the command name, which may itself hold spaces and parentheses: the last ")" ends
// it.
func parseStat(text string) (stat, error) {
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return stat{}, errors.New("no command name")
	}
	fields := strings.Fields(text[end+1:]) // fields[0] is field 3 of proc(5)
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("%d fields after the name, at least 20 are needed", len(fields))
	}
	var numbers [4]int64
	for i, field := range []int{1, 11, 12, 19} { // ppid, utime, stime, starttime
		n, err := strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			return stat{}, err
		}
		numbers[i] = n
	}
	return stat{state: fields[0][0], parent: int(numbers[0]), cpuTicks: numbers[1] + numbers[2],
		startTicks: numbers[3]}, nil
}

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile(procPath(pid, "stat"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return stat{}, ErrGone
	}
	if err != nil {
		return stat{}, err
	}
	s, err := parseStat(string(b))
	if err != nil {
		return stat{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	if s.state == 'Z' || s.state == 'X' {
		return stat{}, ErrGone
	}
	return s, nil
}

func procPath(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

func look(pid int, details bool) (Details, error) {
	if pid <= 0 {
		return Details{}, ErrGone
	}
	boot, err := bootID()
	if err != nil {
		return Details{}, err
	}
	s, err := readStat(pid)
	if err != nil {
		return Details{}, err
	}
	d := Details{Identity: Identity{PID: pid, StartUS: s.startTicks * (1e6 / ticksPerSecond), BootID: boot},
		ParentPID: s.parent, UID: -1}
	if exe, err := os.Readlink(procPath(pid, "exe")); err == nil {
		d.Exe = strings.TrimSuffix(exe, " (deleted)")
		var file unix.Stat_t
		if unix.Stat(procPath(pid, "exe"), &file) == nil { // follows to the running file even when its path is gone
			d.ExeInode = file.Ino
		}
	}
	if details {
		var file unix.Stat_t
		if unix.Stat(procPath(pid, ""), &file) == nil {
			d.UID = int(file.Uid)
		}
		if boot, err := bootTime(); err == nil {
			d.Started = boot.Add(time.Duration(s.startTicks) * time.Second / ticksPerSecond)
		}
		d.Argv = nulList(procPath(pid, "cmdline"))
		// A process in the middle of an exec has no arguments yet, also for a moment after its starter learnt that
		// the exec went well: the kernel closes the descriptors first. A kernel thread has none ever, and no
		// executable.
		for tries := 0; d.Argv == nil && d.Exe != "" && tries < 50; tries++ {
			time.Sleep(time.Millisecond)
			d.Argv = nulList(procPath(pid, "cmdline"))
		}
		d.Env = nulList(procPath(pid, "environ"))
		if cwd, err := os.Readlink(procPath(pid, "cwd")); err == nil && !strings.HasSuffix(cwd, " (deleted)") {
			d.Cwd = cwd
		}
	}
	// Everything above was read by number: only if the same process still has it do the parts belong together.
	again, err := readStat(pid)
	if err != nil {
		return Details{}, err
	}
	if again.startTicks != s.startTicks {
		return Details{}, ErrGone
	}
	return d, nil
}

// nulList reads a list of NUL-terminated strings; nil where it cannot be read or is empty.
func nulList(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil || len(b) == 0 {
		return nil
	}
	var list []string
	for item := range bytes.SplitSeq(bytes.TrimSuffix(b, []byte{0}), []byte{0}) {
		list = append(list, string(item))
	}
	return list
}

// CPUTime is user and system time of the process's threads, without its children, in steps of 10 ms. Errors: ErrGone.
func CPUTime(pid int) (time.Duration, error) {
	s, err := readStat(pid)
	return time.Duration(s.cpuTicks) * time.Second / ticksPerSecond, err
}

// FootprintBytes is the memory that would be free if the process ended: its proportional share of what it maps.
// Errors: ErrGone, ErrHidden.
func FootprintBytes(pid int) (int64, error) {
	b, err := os.ReadFile(procPath(pid, "smaps_rollup"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return 0, ErrGone
	}
	if err != nil {
		return 0, ErrHidden
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, ErrHidden
}

// Children are the pids whose parent is pid now.
func Children(pid int) ([]int, error) {
	all, err := PIDs()
	if err != nil {
		return nil, err
	}
	var children []int
	for _, child := range all {
		if s, err := readStat(child); err == nil && s.parent == pid {
			children = append(children, child)
		}
	}
	return children, nil
}

// PIDs are the numbers of all processes that this user can see.
func PIDs() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
