package device

// PageTransfer is a KV whose pages can be taken out and put back whole. The layout of the bytes is the device's own; its
// Numerics name stands for it. Not during a pass that writes those positions.
type PageTransfer interface {
	KV
	// PageBytes is the size of the first tokens positions of a page, all layers, tokens in [1, PageTokens].
	PageBytes(tokens int) int
	// ReadPage copies the first tokens positions out, [PageBytes(tokens)].
	ReadPage(dst []byte, page int32, tokens int)
	// WritePage puts them back, into any page.
	WritePage(page int32, src []byte, tokens int)
}

// PageReturn is a KV that gives the memory of pages back to the system when it is short. Not during a pass.
type PageReturn interface {
	PageTransfer
	// ReturnPages loses what pages hold: they are as before they were written. On error the KV is of no more use.
	ReturnPages(pages []int32) error
}

// StateTransfer is a State that can be taken out and put back whole, [Bytes].
type StateTransfer interface {
	State
	ReadAll(dst []byte)
	WriteAll(src []byte)
}
