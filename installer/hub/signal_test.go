package hub

import "syscall"

// sigQuit makes Go print every goroutine: the crash dump.
const sigQuit = syscall.SIGQUIT
