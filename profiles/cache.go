package profiles

import "math/bits"

// LeastDiskCacheBytes is the smallest folder: less is not worth one. No bundled model's point with its page is larger.
const LeastDiskCacheBytes = 256 << 20

// MostChosenDiskCacheBytes is the largest folder that is chosen unasked.
const MostChosenDiskCacheBytes = 64 << 30

// CacheBudget bounds what a server keeps of conversations, so that a follow-up computes only what is new. Zero: nothing
// is kept there.
type CacheBudget struct {
	MemoryBytes    int64
	DiskBytes      int64
	DiskDailyBytes int64 // most written in a day
}

const (
	leastCacheBytes = 512 << 20 // three points of a model of 0.8B and their pages
	cachePoints     = 16        // points that are worth having in memory beyond which the disk serves
	wantedDiskBytes = 8 << 30
	diskPoints      = 128     // a day's turns of one person
	freeShare       = 8       // of the free space of the volume, one part
	unknownDiskFree = 8 << 30 // what is counted on where the free space is not known
	dailyTimes      = 8       // a turn is written about once and a long day fills the folder a few times
)

// Cache sizes what is kept for conversations to go on, beside what r uses: its restore points, and what no window
// takes, up to sixteen points and as many bytes of pages (the server halves the memory between both), so that the
// projection stays within the budget. On disk: askedDiskBytes; where that is 0, 128 points' own bytes or 8 GiB, at most
// an eighth of freeBytes (0: not known), in powers of two, so that the same machine gives the same number again; where
// it is negative, nothing. Without room for one point in memory nothing is kept on disk either: it is restored through
// memory.
func (r Result) Cache(freeBytes, askedDiskBytes int64) CacheBudget {
	point := r.Costs.RestorePointBytes
	counted := int64(r.RestorePoints) * point
	spare := max(0, r.BudgetBytes-r.UsedBytes)
	c := CacheBudget{MemoryBytes: min(counted+spare, max(counted, leastCacheBytes, 2*cachePoints*point))}
	if freeBytes <= 0 {
		freeBytes = unknownDiskFree
	}
	disk := askedDiskBytes
	if disk == 0 {
		disk = powerBelow(min(max(wantedDiskBytes, diskPoints*point), freeBytes/freeShare, MostChosenDiskCacheBytes))
	}
	if disk >= LeastDiskCacheBytes && c.MemoryBytes/2 >= point {
		c.DiskBytes, c.DiskDailyBytes = disk, dailyTimes*disk
	}
	return c
}

// powerBelow is the largest power of two that is not above n.
func powerBelow(n int64) int64 {
	if n < 1 {
		return 0
	}
	return 1 << (bits.Len64(uint64(n)) - 1)
}
