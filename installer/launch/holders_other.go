//go:build !linux && !darwin

package launch

import (
	"context"
	"os"
)

func lockHolders(context.Context, string, os.FileInfo) []int { return nil }
