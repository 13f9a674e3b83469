package main

import (
	"fmt"
	"slices"
	"strings"

	"slipway/engine/device"
	"slipway/engine/device/cpu"
	"slipway/metal"
)

// kvFormats are the formats of keys and values that serve takes, by device, the exact one first.
var kvFormats = map[string][]string{"cpu": cpu.KVFormats(), "metal": metal.KVFormats()}

// checkKV refuses a format that the device does not keep; empty is the device's own. What auto will take is known but where Metal
// fails its self-test.
func checkKV(device, format string) error {
	if device == "auto" {
		device = "cpu"
		if metalByItself {
			device = "metal"
		}
	}
	switch {
	case format == "" || slices.Contains(kvFormats[device], format):
		return nil
	case device == "cpu" && slices.Contains(kvFormats["metal"], format):
		return usage("--kv %s: the CPU keeps keys and values in %s and would save nothing in %s; leave --kv out, or answer on a GPU with --device metal", format, kvFormats["cpu"][0], format)
	case device == "metal" && slices.Contains(kvFormats["cpu"], format):
		return usage("--kv %s: Metal keeps keys and values in %s; give one of them, or --device cpu for %s", format, strings.Join(kvFormats["metal"], " or "), format)
	}
	return usage("--kv %s: there are %s on metal and %s on cpu", format, strings.Join(kvFormats["metal"], ", "), strings.Join(kvFormats["cpu"], ", "))
}

// takeKV chooses the format on the device that was opened. Where auto had to go to the CPU it is the CPU's own, with a note.
func (o *opened) takeKV(format string) device.KVFormat {
	has := o.device.KVFormats()
	at := slices.Index(has, format)
	if at < 0 {
		if format != "" {
			o.notes = append(o.notes, fmt.Sprintf("keys and values are kept in %s and not in %s, which this device has not: they are exact, and a token of context takes more memory", has[0], format))
		}
		at = 0
	}
	return device.KVFormat(at)
}
