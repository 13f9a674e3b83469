//go:build unix

package mac

import (
	_ "embed"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"slipway/metal/cpurun"
)

//go:embed testdata/power.cpp
var double string

func TestHoldEndsWithItsRelease(t *testing.T) {
	cpurun.Need(t)
	path, err := cpurun.Shared("power.cpp", double)
	if err != nil {
		t.Fatal(err)
	}
	p, err := OpenPower(PowerLibraries{CoreFoundation: path, IOKit: path})
	if err != nil {
		t.Fatal(err)
	}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	number := func(name string) *int32 {
		at, err := purego.Dlsym(handle, name)
		if err != nil {
			t.Fatal(err)
		}
		return *(**int32)(unsafe.Pointer(&at))
	}
	held, texts, refuse := number("held"), number("strings"), number("refuse")
	first, err := p.Hold("slipway-server answers")
	if err != nil {
		t.Fatal(err)
	}
	second, err := p.Hold("twice")
	if err != nil || *held != 2 {
		t.Fatalf("%v, %d held", err, *held)
	}
	first()
	first()
	if *held != 1 {
		t.Errorf("%d held after one of two was released twice", *held)
	}
	second()
	*refuse = 1
	if _, err := p.Hold("refused"); err == nil || !strings.Contains(err.Error(), "0xe00002c2") {
		t.Errorf("refused: %v", err)
	}
	if *held != 0 || *texts != 0 {
		t.Errorf("%d assertions and %d strings are left", *held, *texts)
	}
	if _, err := OpenPower(PowerLibraries{CoreFoundation: path, IOKit: path + ".none"}); err == nil {
		t.Error("a library that is not there opens")
	}
}
