package main

import "slipway/wire"

// machineNow asks the system how it is. Each question is a system call or a small file.
func machineNow() wire.Machine {
	var m wire.Machine
	askMachine(&m)
	if memory, err := readMemory(); err == nil && memory.TotalBytes > 0 { // what the server itself acts on
		m.Pressure, m.RAMBytes, m.AvailableBytes = memory.Pressure.String(), known(memory.TotalBytes),
			known(memory.FreeBytes)
	}
	return m
}

func known(bytes int64) *int64 { return &bytes }
