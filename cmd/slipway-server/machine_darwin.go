package main

import (
	"encoding/binary"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"slipway/wire"
)

func askMachine(m *wire.Machine) {
	// struct xsw_usage of <sys/sysctl.h>: total, available and used, 8 bytes each.
	if raw, err := unix.SysctlRaw("vm.swapusage"); err == nil && len(raw) >= 24 {
		m.SwapUsedBytes = known(int64(binary.LittleEndian.Uint64(raw[16:])))
	}
	if footprint, ok := footprintBytes(); ok {
		m.OwnBytes = known(footprint)
	}
}

// footprintBytes is ri_phys_footprint of this process, what footprint(1) prints; resident size misses what Metal holds.
// proc_info(2) with PROC_INFO_CALL_PIDRUSAGE and RUSAGE_INFO_V4: numbers and layout are those of
// <sys/proc_info_private.h> and <sys/resource.h>.
func footprintBytes() (int64, bool) {
	const callPIDRUsage, rusageInfoV4 = 9, 4
	var info struct {
		_             [16]byte  // uuid
		_             [7]uint64 // times, wakeups, pageins, wired, resident
		physFootprint uint64
		_             [32]uint64 // the rest of the structure, and room to spare
	}
	//lint:ignore SA1019 the wrapper in libSystem needs cgo
	_, _, errno := unix.Syscall6(unix.SYS_PROC_INFO, callPIDRUsage, uintptr(os.Getpid()), rusageInfoV4, 0,
		uintptr(unsafe.Pointer(&info)), 0)
	return int64(info.physFootprint), errno == 0
}
