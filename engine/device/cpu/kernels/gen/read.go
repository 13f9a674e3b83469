package main

import "github.com/mmcloughlin/avo/operand"

// emitRead is the measure of the others: it reads groups times 256 bytes and does nothing else.
func emitRead(e emitter) {
	args := e.function("read", "expandArgs", "reads groups times 256 bytes at src, for benchmarks.")
	src, n := e.field(args, expandSrc), e.field(args, expandGroups)
	e.Label("line")
	for i := range 256 / e.width() {
		e.VMOVUPS(operand.Mem{Base: src, Disp: i * e.width()}, e.v(i))
	}
	e.add(256, src)
	e.DECQ(n)
	e.JNZ(operand.LabelRef("line"))
	e.done()
}
