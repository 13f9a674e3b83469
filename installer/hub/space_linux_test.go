package hub

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/installer/store"
	testhub "slipway/test/hub"
)

// A volume of 4 MB. Mounting needs root: CI has it.
func smallVolume(t *testing.T) *os.Root {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("no small volume can be mounted here (%v): the full disk is not tested in this run", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	home, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { home.Close() })
	return home
}

func TestNoSpaceIsSeenBeforeTheFirstByte(t *testing.T) {
	k := newKit(t)
	k.home = smallVolume(t)
	var space *store.NoSpaceError
	if err := k.download(within(t, time.Minute)); !errors.As(err, &space) || space.NeededBytes == 0 ||
		space.FreeBytes == 0 {
		t.Fatalf("got %v", err)
	}
	if n := len(k.hub.Log()); n != 0 {
		t.Errorf("%d requests before the space was looked at", n)
	}
}

func TestVolumeFilledByOthersMeanwhile(t *testing.T) {
	k := newKit(t, testhub.File{Path: "a.bin", Content: testhub.Pattern(1, 1<<20), LFS: true},
		testhub.File{Path: "b.bin", Content: testhub.Pattern(2, 1<<20), LFS: true},
		testhub.File{Path: "c.json", Content: testhub.Bytes([]byte(strings.Repeat("x", 900_000)))})
	k.home = smallVolume(t)
	k.config.Connections, k.config.SegmentBytes = 1, 64<<10
	filled := false
	k.hub.OnServed(func(served int64) {
		if served > 300_000 && !filled {
			filled = true
			k.home.WriteFile("other", make([]byte, 4<<20), 0o600) // as much as there is; the error is expected
		}
	})
	err := k.download(within(t, time.Minute))
	var space *store.NoSpaceError
	if !errors.As(err, &space) {
		t.Fatalf("got %v", err)
	}
	k.hub.OnServed(nil)
	k.nothingWrong()
	k.home.Remove("other")
	k.hub.Forget()
	if err := k.download(within(t, time.Minute)); err != nil {
		t.Fatalf("after space was made: %v", err)
	}
	k.whole()
	var sent int64
	for _, seen := range k.hub.Log() {
		if seen.Place == testhub.CDN {
			sent += seen.To - seen.From
		}
	}
	if sent >= 2<<20 {
		t.Error("what had arrived was fetched again")
	}
}
