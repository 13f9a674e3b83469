package main

import (
	"log/slog"

	"slipway/engine/serve"
	"slipway/metal/mac"
)

// What the machine is asked. A build with the tag fakemetal puts others in their place.
var (
	readMemory  = mac.ReadMemory
	systemPower = mac.SystemPower
)

// memoryLevels translates; the two packages number their levels on their own.
var memoryLevels = map[mac.Pressure]serve.MemoryLevel{mac.Normal: serve.MemoryEnough, mac.Warning: serve.MemoryShort, mac.Critical: serve.MemoryCritical}

// machineMemory is what the system says now; where it does not answer, memory is not short.
func machineMemory() serve.Memory {
	m, err := readMemory()
	if err != nil {
		return serve.Memory{}
	}
	return serve.Memory{Level: memoryLevels[m.Pressure], FreeBytes: m.FreeBytes, TotalBytes: m.TotalBytes}
}

// keepAwake holds the machine awake where that can be asked for; nil elsewhere. A refusal is logged once.
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
