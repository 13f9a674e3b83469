package kernels

import (
	"embed"
	"fmt"
	"sort"
	"strings"
)

//go:embed *.metal
var files embed.FS

const preludeName = "prelude.metal"

// Names are the kernel files, without ".metal", in order.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // embedded
	}
	var names []string
	for _, e := range entries {
		if e.Name() != preludeName {
			names = append(names, strings.TrimSuffix(e.Name(), ".metal"))
		}
	}
	sort.Strings(names)
	return names
}

// Source is the text of one library: the prelude, then the file. A compiler's messages name the files.
func Source(name string) string {
	return fmt.Sprintf("#line 1 %q\n%s\n#line 1 %q\n%s", preludeName, read(preludeName), name+".metal",
		read(name+".metal"))
}

func read(file string) string {
	text, err := files.ReadFile(file)
	if err != nil {
		panic(err) // a name that is not in Names is our mistake
	}
	return string(text)
}
