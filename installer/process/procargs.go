package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// procArgs is what kern.procargs2 holds.
type procArgs struct {
	exe       string
	argv, env []string
}

// parseProcArgs reads the layout of kern.procargs2: argc as a native 32-bit integer, the executable's path, NUL
// padding, argc NUL-terminated arguments, then NUL-terminated environment entries up to an empty one. A process that
// overwrites its arguments (setproctitle) leaves fewer than argc: that is an error, since what is left cannot be
// replayed.
func parseProcArgs(raw []byte) (procArgs, error) {
	if len(raw) < 5 {
		return procArgs{}, errors.New("kern.procargs2 is shorter than its header")
	}
	argc := int(binary.NativeEndian.Uint32(raw))
	rest := raw[4:]
	if argc < 0 || argc > len(rest) {
		return procArgs{}, fmt.Errorf("kern.procargs2 claims %d arguments in %d bytes", argc, len(rest))
	}
	exe, rest, ok := bytes.Cut(rest, []byte{0})
	if !ok || len(exe) == 0 {
		return procArgs{}, errors.New("kern.procargs2 names no executable")
	}
	rest = bytes.TrimLeft(rest, "\x00")
	args := procArgs{exe: string(exe)}
	for range argc {
		var arg []byte
		if arg, rest, ok = bytes.Cut(rest, []byte{0}); !ok {
			return procArgs{exe: args.exe}, fmt.Errorf("kern.procargs2 holds %d of %d arguments", len(args.argv), argc)
		}
		args.argv = append(args.argv, string(arg))
	}
	for len(rest) > 0 {
		var entry []byte
		if entry, rest, ok = bytes.Cut(rest, []byte{0}); len(entry) == 0 || !ok {
			break
		}
		args.env = append(args.env, string(entry))
	}
	return args, nil
}
