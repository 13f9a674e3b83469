package memory

// Tier is where a point is held.
type Tier int

const (
	InMemory Tier = iota
	OnDisk
	tiers
)

// PageID names a page within a tier: pages that points share by prefix are counted once.
type PageID uint64

// Cost is what holding a point takes: bytes of its own and pages that it may share.
type Cost struct {
	Bytes int64
	Pages []PageID
}

// Budget bounds a tier; each bound holds at every moment.
type Budget struct {
	OwnBytes   int64 // of all points' own bytes
	Pages      int   // distinct
	TotalBytes int64 // own bytes and pages
	PageBytes  int64
}

// usage is what a tier's points take.
type usage struct {
	budget Budget
	own    int64
	pages  map[PageID]int // references
	points int
}

func (u *usage) total() int64 { return u.own + int64(len(u.pages))*u.budget.PageBytes }

// fits reports whether cost can be added.
func (u *usage) fits(cost Cost) bool {
	own, pages := u.short(cost)
	return !own && !pages
}

func (u *usage) add(cost Cost) {
	u.own += cost.Bytes
	u.points++
	for _, p := range cost.Pages {
		u.pages[p]++
	}
}

func (u *usage) take(cost Cost) {
	u.own -= cost.Bytes
	u.points--
	for _, p := range cost.Pages {
		if u.pages[p]--; u.pages[p] == 0 {
			delete(u.pages, p)
		}
	}
}

// short tells which of a tier's bounds is in the way of cost.
func (u *usage) short(cost Cost) (own, pages bool) {
	fresh := u.fresh(cost)
	total := u.total()+cost.Bytes+int64(fresh)*u.budget.PageBytes > u.budget.TotalBytes
	return total || u.own+cost.Bytes > u.budget.OwnBytes, total || len(u.pages)+fresh > u.budget.Pages
}

// fresh is how many pages of cost are not held yet.
func (u *usage) fresh(cost Cost) (n int) {
	for _, p := range cost.Pages {
		if u.pages[p] == 0 {
			n++
		}
	}
	return n
}

// frees is the bytes, own or of pages or both, that releasing this cost frees: shared pages stay.
func (u *usage) frees(cost Cost, own, pages bool) (bytes int64) {
	if own {
		bytes += cost.Bytes
	}
	for _, p := range cost.Pages {
		if pages && u.pages[p] == 1 {
			bytes += u.budget.PageBytes
		}
	}
	return bytes
}

// Usage is what a tier holds.
type Usage struct {
	Points     int
	OwnBytes   int64
	Pages      int
	TotalBytes int64
}
