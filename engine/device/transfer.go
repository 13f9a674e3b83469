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

// StateTransfer is a State that can be taken out and put back whole, [Bytes].
type StateTransfer interface {
	State
	ReadAll(dst []byte)
	WriteAll(src []byte)
}
