package apply

import (
	"fmt"
	"os"
)

// A migration turns a home of one layout into the next. It can be run again after it was killed: the marker gets the
// new version only when it is done.
type migration struct {
	from int
	does string // a sentence
	run  func(root *os.Root) error
}

// migrations leads from every older layout to HomeVersion. Version 1 is the first, so there is none yet.
var migrations []migration

// Migrate brings a home of ours to this program's layout and says what it did. It does nothing on a current home.
// Errors: ErrNoHome, *HomeError, *LockedError.
func Migrate(path, userHome string) ([]string, error) {
	return migrateTo(HomeVersion, migrations, path, userHome)
}

func migrateTo(version int, steps []migration, path, userHome string) ([]string, error) {
	view := LookHome(path, userHome)
	if view.Old {
		view.Err = nil // that is what we are here for
	}
	home, err := openLooked(view, view.Marked)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	if home.Marker.HomeVersion == version {
		return nil, nil
	}
	lock, err := home.Lock("slipway upgrade")
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	var done []string
	for _, step := range steps {
		if step.from != home.Marker.HomeVersion {
			continue
		}
		if err := step.run(home.Root); err != nil {
			return done, fmt.Errorf("layout %d: %w", step.from, err)
		}
		home.Marker.HomeVersion++
		if err := writeMarker(home.Root, home.Marker); err != nil {
			return done, err
		}
		done = append(done, step.does)
	}
	if home.Marker.HomeVersion != version {
		return done, fmt.Errorf("no way is known from layout %d of %s to layout %d", home.Marker.HomeVersion, path,
			version)
	}
	return done, nil
}
