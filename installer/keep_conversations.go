package installer

import (
	"cmp"

	"slipway/installer/machine"
	"slipway/installer/plan"
	"slipway/profiles"
)

// keepConversations sizes what the server keeps of conversations, beside the model that is yet to come.
func (c *choice) keepConversations(in Input, facts machine.Facts) {
	if c.result == nil {
		return
	}
	free := int64(0)
	if facts.DiskFree.Known {
		free = max(1, facts.DiskFree.Value-c.model.DownloadBytes)
	}
	c.sized = withCache(c.sized, c.result.Cache(free, in.DiskCacheBytes))
}

func withCache(sized plan.Profile, kept profiles.CacheBudget) plan.Profile {
	sized.CacheMemoryBytes, sized.CacheDiskBytes, sized.CacheDiskDailyBytes = kept.MemoryBytes, kept.DiskBytes,
		kept.DiskDailyBytes
	return sized
}

// diskCache is the wish that goes into the request: what was chosen, so that the same request gives the same plan
// however much space is left by then.
func (c *choice) diskCache(r plan.Request) int64 {
	return cmp.Or(r.DiskCacheBytes, c.sized.CacheDiskBytes)
}

// planOf makes the plan. Where the disk cache was chosen and a plan was begun when more or less space was free, that
// plan goes on: its own downloads must not make it another one.
func planOf(d plan.Decisions, in Input, result *profiles.Result, journal string) plan.Plan {
	p := plan.Make(d)
	if journal == "" || p.Digest == journal || in.DiskCacheBytes != 0 || result == nil {
		return p
	}
	for bytes := int64(profiles.LeastDiskCacheBytes); bytes <= profiles.MostChosenDiskCacheBytes; bytes *= 2 {
		begun := d
		begun.Request.DiskCacheBytes = bytes
		begun.Profile = withCache(begun.Profile, result.Cache(0, bytes))
		if q := plan.Make(begun); q.Digest == journal {
			return q
		}
	}
	return p
}
