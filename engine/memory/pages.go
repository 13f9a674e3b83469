package memory

import "errors"

// ErrNoPages says that every page is in use.
var ErrNoPages = errors.New("no free page of attention memory: end a sequence or drop a restore point")

// Pages counts the references to a pool of pages. Sequences and restore points with the same prefix share pages. The
// fill of a page is its high-water mark: a sequence that ends exactly there may append in place, because no positions
// of others lie beyond; one that ends before it must copy the page first, unless it holds the only reference. So a
// restore point costs no copy of a page while its sequence continues, and one copy when a second sequence branches off.
//
// Not safe for concurrent use: the network's lock guards it.
type Pages struct {
	refs []int32 // 0 = free
	fill []int32 // positions written, [0, tokensPerPage]
	free []int32 // stack
}

// NewPages makes a pool of n free pages.
func NewPages(n int) *Pages {
	p := &Pages{refs: make([]int32, n), fill: make([]int32, n), free: make([]int32, n)}
	for i := range p.free {
		p.free[i] = int32(n - 1 - i) // page 0 on top
	}
	return p
}

// Free is the number of free pages.
func (p *Pages) Free() int { return len(p.free) }

// FreePages are the free pages themselves, in no order; valid until the next Take or Drop.
func (p *Pages) FreePages() []int32 { return p.free }

// Len is the number of pages.
func (p *Pages) Len() int { return len(p.refs) }

// Take gives an empty page with one reference.
func (p *Pages) Take() (int32, error) {
	if len(p.free) == 0 {
		return 0, ErrNoPages
	}
	page := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.refs[page], p.fill[page] = 1, 0
	return page, nil
}

// Share adds one reference to each page.
func (p *Pages) Share(pages []int32) {
	for _, page := range pages {
		if p.refs[page] <= 0 {
			panic("memory: Share of a free page")
		}
		p.refs[page]++
	}
}

// Drop takes one reference from each page; unreferenced pages are free again.
func (p *Pages) Drop(pages []int32) {
	for _, page := range pages {
		if p.refs[page] <= 0 {
			panic("memory: Drop of a free page")
		}
		if p.refs[page]--; p.refs[page] == 0 {
			p.free = append(p.free, page)
		}
	}
}

// MayWrite reports whether positions from offset on may be written in place: the page is the writer's alone, or offset
// is its high-water mark.
func (p *Pages) MayWrite(page int32, offset int) bool {
	return p.refs[page] == 1 || int(p.fill[page]) <= offset
}

// Wrote records that positions up to end were written, as MayWrite allowed. What lay beyond them is lost.
func (p *Pages) Wrote(page int32, end int) { p.fill[page] = int32(end) }
