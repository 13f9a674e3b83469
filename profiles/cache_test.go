package profiles_test

import (
	"testing"

	"slipway/profiles"
)

// What is kept of conversations may not take memory that the projection gave to something else, nor fill a disk.
func TestCacheStaysWithinTheBudgetAndTheDisk(t *testing.T) {
	for _, id := range []string{"pocket", "qwen3.5-4b-4bit", "qwen3.5-9b-4bit", "qwen3.8-27b-mtplx-bare-speed"} {
		for _, ram := range []int64{2, 4, 8, 16, 24, 36, 64, 128, 512} {
			r, err := profiles.Size(profiles.Input{Model: model(t, id), Profile: profile(t, "exact"),
				Machine: profiles.Machine{RAMBytes: ram * gib}})
			if err != nil {
				continue // does not fit at all
			}
			counted := int64(r.RestorePoints) * r.Costs.RestorePointBytes
			for _, free := range []int64{0, 1, gib, 20 * gib, 500 * gib, 8000 * gib} {
				c := r.Cache(free, 0)
				if r.UsedBytes-counted+c.MemoryBytes > r.BudgetBytes || c.MemoryBytes < counted {
					t.Errorf("%s on %d GiB: %d bytes for points beside %d of %d", id, ram, c.MemoryBytes,
						r.UsedBytes-counted, r.BudgetBytes)
				}
				if free > 0 && c.DiskBytes > free/8 || c.DiskBytes > profiles.MostChosenDiskCacheBytes ||
					c.DiskBytes&(c.DiskBytes-1) != 0 {
					t.Errorf("%s: %d bytes on a disk with %d free", id, c.DiskBytes, free)
				}
				if c.DiskBytes > 0 && (c.MemoryBytes < 2*r.Costs.RestorePointBytes || c.DiskDailyBytes < c.DiskBytes) {
					t.Errorf("%s on %d GiB: a disk that the server would refuse: %+v", id, ram, c)
				}
			}
			if c := r.Cache(500*gib, -1); c.DiskBytes != 0 || c.DiskDailyBytes != 0 {
				t.Errorf("%s: switched off, %+v", id, c)
			}
			if c := r.Cache(500*gib, 3*gib); c.DiskBytes != 3*gib && c.MemoryBytes >= 2*r.Costs.RestorePointBytes {
				t.Errorf("%s: 3 GiB were asked for, %+v", id, c)
			}
		}
	}
}

func TestSmallModelOnALaptopKeepsConversationsOnDisk(t *testing.T) {
	r, err := profiles.Size(profiles.Input{Model: model(t, "pocket"), Profile: profile(t, "exact"),
		Machine: profiles.Machine{RAMBytes: 8 * gib}})
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Cache(100*gib, 0); c.MemoryBytes != 512<<20 || c.DiskBytes != 8*gib || c.DiskDailyBytes != 64*gib {
		t.Errorf("%+v", c)
	}
}
