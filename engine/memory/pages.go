package memory

import "errors"

// ErrNoPages says that every page is in use.
var ErrNoPages = errors.New("no free page of attention memory: end a sequence or drop a restore point")

// Pages is the book of a pool of pages. A page is shared by reference between sequences and restore points that have the same
// prefix. Its fill is the high-water mark of what anyone wrote into it: whoever stands exactly there may append in place,
// because no one else's positions lie beyond; whoever stands before it must copy first, unless he is alone. So a restore
// point costs no copy of a page while its sequence goes on, and one when a second sequence branches off it.
//
// Not safe for concurrent use: the network's lock guards it.
type Pages struct {
	refs []int32 // 0 = free
	fill []int32 // positions written, [0, tokensPerPage]
	free []int32 // stack
}

// NewPages makes a book of n free pages.
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

// Take hands out an empty page with one reference.
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

// Drop takes one reference from each page; pages that nobody refers to are free again.
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

// MayWrite tells whether positions from offset on may be written in place: the page is the writer's alone, or offset is its
// high-water mark.
func (p *Pages) MayWrite(page int32, offset int) bool {
	return p.refs[page] == 1 || int(p.fill[page]) <= offset
}

// Wrote records that positions up to end were written by someone who may: either nobody had written beyond, or he is alone
// and what lay beyond is gone.
func (p *Pages) Wrote(page int32, end int) { p.fill[page] = int32(end) }
