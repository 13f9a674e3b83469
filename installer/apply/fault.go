package apply

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// FaultVariable names the environment variable that makes a run die at a journal write, for the tests that prove that
// dying there does no harm: "N:before", "N:torn" (half of the line is written) or "N:after" kills the process with
// SIGKILL at the Nth journal write of the run. Unset, it does nothing.
const FaultVariable = "SLIPWAY_TEST_KILL_AT_JOURNAL_WRITE"

type fault struct {
	left *int
	when string
}

func faultFromEnv() fault {
	number, when, ok := strings.Cut(os.Getenv(FaultVariable), ":")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return fault{}
	}
	return fault{left: &n, when: when}
}

func (f fault) before(file *os.File, line []byte) {
	if f.left == nil {
		return
	}
	*f.left--
	if *f.left != 0 {
		return
	}
	switch f.when {
	case "before":
		die()
	case "torn":
		file.Write(line[:len(line)/2])
		die()
	}
}

func (f fault) after() {
	if f.left != nil && *f.left == 0 && f.when == "after" {
		die()
	}
}

func die() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
