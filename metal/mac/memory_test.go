package mac

import "testing"

func TestMemoryPressureIsRead(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		level, percent uint32
		want           Pressure
		free           int64
		known          bool
	}{{1, 50, Normal, 16 * gib / 100 * 50, true}, {2, 12, Warning, 16 * gib / 100 * 12, true},
		{4, 3, Critical, 16 * gib / 100 * 3, true}, {4, 250, Critical, 16 * gib / 100 * 100, true},
		{3, 50, Normal, 16 * gib / 100 * 50, false}} {
		m, err := memoryOf(c.level, c.percent, 16*gib)
		if m.Pressure != c.want || m.FreeBytes != c.free || m.TotalBytes != 16*gib || (err == nil) != c.known {
			t.Errorf("level %d at %d %%: %+v, %v", c.level, c.percent, m, err)
		}
	}
	if m, err := ReadMemory(); err != nil || m.Pressure > Critical {
		t.Errorf("this machine: %+v, %v", m, err)
	}
}
