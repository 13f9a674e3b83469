package store

import (
	"context"
	"io"
	"os"

	"slipway/manifests"
)

// Settle hashes the files that a fast check could not vouch for (changed, unrecorded), so that what is right is
// recorded and not fetched again. It returns the report with what it learnt.
func Settle(ctx context.Context, home *os.Root, lock manifests.Lock, report Report) (Report, error) {
	var doubtful []installedLine
	for i := range report.Files {
		r := &report.Files[i]
		if r.State != Changed && r.State != Unrecorded {
			continue
		}
		f, err := home.Open(filePath(lock, r.Path))
		if err != nil {
			continue
		}
		found, err := HashOf(ctx, f, nil)
		f.Close()
		if ctx.Err() != nil {
			return report, ctx.Err()
		}
		if r.Found = found; err == nil && found == r.Expected {
			r.State = OK
			doubtful = append(doubtful, installedLine{r.Path, found, r.identity})
		} else {
			r.State = WrongHash
		}
	}
	return report, appendInstalled(home, lock, doubtful...)
}

// Copy installs a file of the lock from another one with the same bytes, which is installed. The copy is hashed.
func Copy(ctx context.Context, home *os.Root, lock manifests.Lock, from, to string) error {
	src, err := home.Open(filePath(lock, from))
	if err != nil {
		return err
	}
	defer src.Close()
	return Install(ctx, home, lock, to, io.Reader(src))
}
