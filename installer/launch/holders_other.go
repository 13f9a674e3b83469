//go:build !linux && !darwin

package launch

import (
	"context"
	"os"
)

func Users(context.Context, string, os.FileInfo) []int { return nil }
