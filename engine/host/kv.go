package host

import (
	"fmt"
	"slices"
	"strings"

	"slipway/engine/device"
	"slipway/engine/device/cpu"
)

// KVFormats are the formats of keys and values that serve takes, by device, the exact one first.
func KVFormats(a device.Accelerator) map[string][]string {
	formats := map[string][]string{"cpu": cpu.KVFormats()}
	if a != nil {
		formats[a.Name()] = a.KVFormats()
	}
	return formats
}

// checkKV refuses a format that the device does not keep; empty is the device's own. With auto the device may still be
// another one, where the GPU fails its self-test.
func (s Settings) checkKV() error {
	formats, name := KVFormats(s.Accelerator), s.deviceName()
	format := s.KV
	switch {
	case format == "" || slices.Contains(formats[name], format):
		return nil
	case name == "cpu" && slices.Contains(formats["metal"], format):
		return refuse("--kv %s: the CPU keeps keys and values in %s and would save nothing in %s; leave --kv out, "+
			"or answer on a GPU with --device metal", format, formats["cpu"][0], format)
	case name == "metal" && slices.Contains(formats["cpu"], format):
		return refuse("--kv %s: Metal keeps keys and values in %s; give one of them, or --device cpu for %s", format,
			strings.Join(formats["metal"], " or "), format)
	case s.Accelerator == nil:
		return refuse("--kv %s: there is %s", format, formats["cpu"][0])
	}
	return refuse("--kv %s: there are %s on metal and %s on cpu", format, strings.Join(formats["metal"], ", "),
		strings.Join(formats["cpu"], ", "))
}

// chooseKV chooses the format on the opened device. If the device lacks it, because auto fell back to the CPU, it is
// the device's own, with a note.
func (o *opened) chooseKV(format string) device.KVFormat {
	has := o.device.KVFormats()
	at := slices.Index(has, format)
	if at < 0 {
		if format != "" {
			o.notes = append(o.notes, fmt.Sprintf("keys and values are kept in %s and not in %s, which this device "+
				"has not: they are exact, and a token of context takes more memory", has[0], format))
		}
		at = 0
	}
	return device.KVFormat(at)
}
