package hub

import (
	"slices"

	"slipway/manifests"
)

// sortBySize puts the largest first, and orders equals by path.
func sortBySize(files []manifests.File) {
	slices.SortFunc(files, func(a, b manifests.File) int {
		switch {
		case a.Size > b.Size:
			return -1
		case a.Size < b.Size:
			return 1
		case a.Path < b.Path:
			return -1
		}
		return 1
	})
}
