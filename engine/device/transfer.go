package device

// PageTransfer is a KV whose pages can be read and written whole. The layout of the bytes is the device's own; its
// Numerics name stands for it. Not during a pass that writes those positions.
type PageTransfer interface {
	KV
	// PageBytes is the size of the first tokens positions of a page, all layers, tokens in [1, PageTokens].
	PageBytes(tokens int) int
	// ReadPage copies the first tokens positions out, [PageBytes(tokens)].
	ReadPage(dst []byte, page int32, tokens int)
	// WritePage writes them, into any page.
	WritePage(page int32, src []byte, tokens int)
}

// PageReturn is a KV that can return the memory of pages to the system. Not during a pass.
type PageReturn interface {
	PageTransfer
	// ReturnPages clears pages: they are as before they were written. After an error the KV cannot be used.
	ReturnPages(pages []int32) error
}

// StateTransfer is a State that can be read and written whole, [Bytes].
type StateTransfer interface {
	State
	ReadAll(dst []byte)
	WriteAll(src []byte)
}
