package apply

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestMigrationThatFailsHalfWayIsTakenUpWhereItStopped(t *testing.T) {
	home := makeHome(t)
	old := home.Marker
	old.HomeVersion = HomeVersion - 2
	if err := writeMarker(home.Root, old); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenHome(home.Path, ""); err == nil || !strings.Contains(err.Error(), "slipway upgrade") {
		t.Fatalf("an old home is opened as if it were current: %v", err)
	}
	broken, ran := true, []string{}
	steps := []migration{
		{HomeVersion - 2, "first", func(*os.Root) error { ran = append(ran, "first"); return nil }},
		{HomeVersion - 1, "second", func(*os.Root) error {
			ran = append(ran, "second")
			if broken {
				return errors.New("the power went")
			}
			return nil
		}},
	}
	if done, err := migrateTo(HomeVersion, steps, home.Path, ""); err == nil || !slices.Equal(done, []string{"first"}) {
		t.Fatalf("%v %v", done, err)
	}
	broken = false
	if done, err := migrateTo(HomeVersion, steps, home.Path, ""); err != nil ||
		!slices.Equal(done, []string{"second"}) {
		t.Fatalf("%v %v", done, err)
	}
	if !slices.Equal(ran, []string{"first", "second", "second"}) {
		t.Fatal(ran)
	}
	again, err := OpenHome(home.Path, "")
	if err != nil || again.Marker.MadeHome != old.MadeHome {
		t.Fatalf("%+v %v", again, err)
	}
	again.Close()
}

func TestMigrateOfAHomeThatNeedsNoneOrIsNone(t *testing.T) {
	home := makeHome(t)
	if done, err := Migrate(home.Path, ""); err != nil || done != nil {
		t.Fatalf("%v %v", done, err)
	}
	if _, err := Migrate(t.TempDir(), ""); !errors.Is(err, ErrNoHome) {
		t.Fatalf("%v", err)
	}
}

func TestEveryOlderLayoutHasItsMigration(t *testing.T) {
	have := map[int]bool{}
	for _, m := range migrations {
		have[m.from] = true
	}
	for v := 1; v < HomeVersion; v++ {
		if !have[v] {
			t.Errorf("no migration from layout %d", v)
		}
	}
}
