package apply

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// KillVariable names the environment variable that makes a run die at a journal write, for the tests that prove that
// dying there does no harm: "N:before", "N:torn" (half of the line is written) or "N:after" kills the process with
// SIGKILL at the Nth journal write of the run. Unset, it does nothing.
const KillVariable = "SLIPWAY_TEST_KILL_AT_JOURNAL_WRITE"

type killPoint struct {
	left *int
	when string
}

func killPointFromEnv() killPoint {
	number, when, ok := strings.Cut(os.Getenv(KillVariable), ":")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return killPoint{}
	}
	return killPoint{left: &n, when: when}
}

func (k killPoint) before(file *os.File, line []byte) {
	if k.left == nil {
		return
	}
	*k.left--
	if *k.left != 0 {
		return
	}
	switch k.when {
	case "before":
		die()
	case "torn":
		file.Write(line[:len(line)/2])
		die()
	}
}

func (k killPoint) after() {
	if k.left != nil && *k.left == 0 && k.when == "after" {
		die()
	}
}

func die() {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
