//go:build unix

package metal

import (
	"regexp"
	"testing"

	"slipway/metal/kernels"
)

var rePlainVariant = regexp.MustCompile(`(?m)^//.*Plain variant: (\w+)\.metal`)

// The head comment of a kernel file names the plain variant that the host uses in its place.
func TestHeadNamesThePlainVariantThatTheHostUses(t *testing.T) {
	for _, file := range kernels.Names() {
		named := ""
		if m := rePlainVariant.FindStringSubmatch(kernels.Source(file)); m != nil {
			named = m[1]
		}
		if named != plainOf[file] {
			t.Errorf("%s.metal: the head names the plain variant %q, the host takes %q", file, named, plainOf[file])
		}
	}
}
