package mtl

// SelectorCount is how many rows the table of selectors has.
const SelectorCount = int(selectorCount)

// Row is one of them.
func Row(i int) (name, result, arguments string) {
	r := selectorTable[i]
	return r.name, r.result, r.arguments
}
