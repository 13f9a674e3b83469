package operate

import (
	"os"
	"os/exec"
	"strconv"
)

// stayAwake keeps an idle Mac from sleeping while this process works: a sleep would cut downloads and builds.
// caffeinate ends with this process by itself. Without it the work continues as well as it can.
func stayAwake() {
	cmd := exec.Command("/usr/bin/caffeinate", "-i", "-w", strconv.Itoa(os.Getpid()))
	if cmd.Start() == nil {
		go cmd.Wait()
	}
}
