package launch

import (
	"encoding/json"
	"os"

	"slipway/atomicfile"
	"slipway/termtext"
	"slipway/wire"
)

// WriteLaunch replaces the file at [wire.LaunchPath]. A reader sees the old one or the new one.
func WriteLaunch(root *os.Root, l wire.Launch) error {
	l.SchemaVersion = 1
	for _, text := range []*string{&l.Profile, &l.Limit} {
		*text = termtext.Line(*text)
	}
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(root, wire.LaunchPath, append(data, '\n'), 0o600)
}
