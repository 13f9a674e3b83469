package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"slipway/atomicfile"
	"slipway/installer/plan"
)

// HomeVersion is the version of the layout below a home. A newer one is refused, an older one is migrated by upgrade.
const HomeVersion = 1

// Marker is the content of .slipway-home. MadeHome and MadeParents say what uninstall may remove above the marker.
type Marker struct {
	Product     string   `json:"product"`
	HomeVersion int      `json:"home_version"`
	MadeHome    bool     `json:"made_home"`
	MadeParents []string `json:"made_parents"` // absolute, outermost first
}

func writeMarker(root *os.Root, m Marker) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(root, plan.MarkerPath, append(data, '\n'), 0o600)
}

func readMarker(root *os.Root) (Marker, error) {
	data, err := root.ReadFile(plan.MarkerPath)
	if err != nil {
		return Marker{}, err
	}
	var m Marker
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // an editor's; nothing is proved by this file
	if err := json.Unmarshal(data, &m); err != nil || m.Product != "slipway" {
		return Marker{}, fmt.Errorf("has a marker %s that slipway did not write", plan.MarkerPath)
	}
	if m.HomeVersion > HomeVersion {
		return Marker{}, fmt.Errorf("was made by a newer slipway (layout %d, this program knows %d)", m.HomeVersion,
			HomeVersion)
	}
	return m, nil
}
