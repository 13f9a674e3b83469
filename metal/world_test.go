//go:build unix

package metal_test

import (
	"slices"
	"sync"
	"testing"

	"slipway/engine/device"
	"slipway/engine/device/cpu"
	"slipway/metal"
	"slipway/metal/cpurun"
	"slipway/metal/fake"
	"slipway/metal/selftest"
)

var devices = struct {
	sync.Mutex
	made map[bool]*metal.Device
	cpu  *cpu.Device
}{made: map[bool]*metal.Device{}}

// metals are the device with its fast kernels and one with the plain ones, kept for all tests.
func metals(t testing.TB, c fake.Configuration) map[string]*metal.Device {
	t.Helper()
	cpurun.Need(t)
	libraries, err := fake.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	devices.Lock()
	defer devices.Unlock()
	for _, plain := range []bool{false, true} {
		if devices.made[plain] == nil {
			d, err := metal.New(metal.Options{Libraries: libraries, Plain: plain})
			if err != nil {
				t.Fatal(err)
			}
			devices.made[plain] = d
		}
	}
	return map[string]*metal.Device{"fast": devices.made[false], "plain": devices.made[true]}
}

func reference() device.Device {
	devices.Lock()
	defer devices.Unlock()
	if devices.cpu == nil {
		devices.cpu = cpu.New(1)
	}
	return devices.cpu
}

// newWorld is a world that ends with the test.
func newWorld(t testing.TB, d device.Device, seed uint64) *selftest.World {
	w := selftest.NewWorld(d, seed)
	t.Cleanup(w.Release)
	return w
}

// check runs an operation on Metal and returns how it differs from the reference.
func check(o selftest.Operation, d device.Device, seed uint64) string {
	_, what := selftest.Check(d, reference(), o, seed)
	return what
}

func differ(got, want [][]float32, tolerance float64) string {
	_, what := selftest.Differ(got, want, tolerance)
	return what
}

// about are the operations that go through a kernel file.
func about(file string) (all []selftest.Operation) {
	for _, o := range selftest.Few() {
		if slices.Contains(o.Files, file) {
			all = append(all, o)
		}
	}
	return all
}
