// Command lockpocket writes the lock of the embedded model. Run it by `go generate ./manifests` after a file of
// manifests/pocket changed; a test fails until then.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"slipway/manifests"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "lockpocket:", err)
		os.Exit(1)
	}
}

// run works in the folder of package manifests, where go generate starts it.
func run() error {
	lock, err := manifests.LockFolder(manifests.PocketRepo, "the files embedded in this program", manifests.Pocket())
	if err != nil {
		return err
	}
	data, err := lock.Marshal()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join("locks", manifests.PocketID+".lock.json"), data, 0o644)
}
