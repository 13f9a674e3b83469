package process

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bootID changes with every boot. kern.boottime would not do: it moves when the clock is set.
var bootID = sync.OnceValues(func() (string, error) { return unix.Sysctl("kern.bootsessionuuid") })

const stateZombie = 5 // SZOMB of <sys/proc.h>

func look(pid int, details bool) (Details, error) {
	if pid <= 0 {
		return Details{}, ErrGone
	}
	boot, err := bootID()
	if err != nil {
		return Details{}, err
	}
	k, err := kinfo(pid)
	if err != nil {
		return Details{}, err
	}
	start := k.Proc.P_starttime
	d := Details{
		Identity:  Identity{PID: pid, StartUS: start.Sec*1e6 + int64(start.Usec), BootID: boot},
		ParentPID: int(k.Eproc.Ppid),
		UID:       int(k.Eproc.Ucred.Uid),
		Started:   time.Unix(start.Sec, int64(start.Usec)*1000),
	}
	if raw, err := unix.SysctlRaw("kern.procargs2", pid); err == nil {
		args, err := parseProcArgs(raw)
		if args.exe != "" {
			d.Exe = args.exe
			var file unix.Stat_t
			if unix.Stat(args.exe, &file) == nil {
				d.ExeInode = file.Ino
			}
			if details && err == nil {
				d.Argv, d.Env = args.argv, args.env
			}
		}
	}
	if details {
		d.Cwd = workingFolder(pid)
	}
	again, err := kinfo(pid)
	if err != nil {
		return Details{}, err
	}
	if again.Proc.P_starttime != start {
		return Details{}, ErrGone
	}
	return d, nil
}

func kinfo(pid int) (*unix.KinfoProc, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil { // an unknown pid yields an empty answer, which x/sys reports as EIO
		if errors.Is(err, unix.EIO) || errors.Is(err, unix.ESRCH) {
			return nil, ErrGone
		}
		return nil, err
	}
	if int(k.Proc.P_pid) != pid || k.Proc.P_stat == stateZombie {
		return nil, ErrGone
	}
	return k, nil
}

// workingFolder asks lsof by absolute path; an app's PATH lacks /usr/sbin.
func workingFolder(pid int) string {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	out, err := lsof(ctx, "-a", "-p", strconv.Itoa(pid), "-d", "cwd", "-Fn")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		if folder, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "n"); ok && strings.HasPrefix(folder, "/") {
			return folder
		}
	}
	return ""
}

// lsof runs the system's lsof. Exit 1 with empty output is its way to say "nothing found": the caller sees an empty
// answer, which is unknown and not a proof of absence.
func lsof(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "/usr/sbin/lsof", append([]string{"-nP", "-w"}, args...)...)
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/bin:/bin:/usr/sbin:/sbin"}
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return out, nil
	}
	return out, err
}

// proc_info(2) with PROC_INFO_CALL_PIDRUSAGE and RUSAGE_INFO_V4; the numbers and the layout are those of
// <sys/proc_info_private.h> and <sys/resource.h>.
const (
	callPIDRUsage = 9
	rusageInfoV4  = 4
)

type rusageV4 struct {
	_             [16]byte // uuid
	userTime      uint64   // in ticks of mach_absolute_time
	systemTime    uint64
	_             [5]uint64 // wakeups, pageins, wired, resident
	physFootprint uint64
	_             [32]uint64 // the rest of the structure, and room to spare
}

func rusage(pid int) (rusageV4, error) {
	var info rusageV4
	//lint:ignore SA1019 the wrapper in libSystem needs cgo
	_, _, errno := unix.Syscall6(unix.SYS_PROC_INFO, callPIDRUsage, uintptr(pid), rusageInfoV4, 0,
		uintptr(unsafe.Pointer(&info)), 0)
	switch {
	case errno == 0:
		return info, nil
	case errno == unix.ESRCH:
		return info, ErrGone
	case errno == unix.EPERM:
		return info, ErrHidden
	}
	return info, errno
}

// CPUTime is user and system time of the process's threads. Errors: ErrGone, ErrHidden.
func CPUTime(pid int) (time.Duration, error) {
	info, err := rusage(pid)
	return machTicks(info.userTime + info.systemTime), err
}

// FootprintBytes is ri_phys_footprint, what footprint(1) prints; RSS misses what Metal holds.
// Errors: ErrGone, ErrHidden.
func FootprintBytes(pid int) (int64, error) {
	info, err := rusage(pid)
	return int64(info.physFootprint), err
}

// Children are the pids whose parent is pid now.
func Children(pid int) ([]int, error) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	var children []int
	for _, k := range all {
		if int(k.Eproc.Ppid) == pid && k.Proc.P_stat != stateZombie {
			children = append(children, int(k.Proc.P_pid))
		}
	}
	return children, nil
}

// PIDs are the numbers of all processes.
func PIDs() ([]int, error) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	pids := make([]int, len(all))
	for i, k := range all {
		pids[i] = int(k.Proc.P_pid)
	}
	return pids, nil
}
