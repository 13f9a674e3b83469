package main

import (
	"log/slog"

	"slipway/engine/serve"
	"slipway/metal/mac"
)

// Where memory and power are read. A build with the tag fakemetal replaces them.
var (
	readMemory  = mac.ReadMemory
	systemPower = mac.SystemPower
)

// memoryLevels converts the levels of package mac.
var memoryLevels = map[mac.Pressure]serve.MemoryLevel{mac.Normal: serve.MemoryEnough, mac.Warning: serve.MemoryShort,
	mac.Critical: serve.MemoryCritical}

// machineMemory is what the system reports now. If it reports nothing, memory is not short.
func machineMemory() serve.Memory {
	m, err := readMemory()
	if err != nil {
		return serve.Memory{}
	}
	return serve.Memory{Level: memoryLevels[m.Pressure], FreeBytes: m.FreeBytes, TotalBytes: m.TotalBytes}
}

// keepAwake keeps the machine awake where the system offers it; nil elsewhere. A refusal is logged once.
func keepAwake(log *slog.Logger) func() func() {
	power, err := systemPower()
	if err != nil {
		return nil
	}
	refused := false
	return func() func() {
		release, err := power.Hold("slipway-server works on a request")
		if err != nil {
			if !refused {
				log.Warn("the machine may fall asleep while requests run", "error", err.Error())
			}
			refused = true
			return func() {}
		}
		return release
	}
}
