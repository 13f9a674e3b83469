package process

import (
	"encoding/binary"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func procArgsBlob(argc int, parts ...string) []byte {
	blob := binary.NativeEndian.AppendUint32(nil, uint32(argc))
	for _, p := range parts {
		blob = append(append(blob, p...), 0)
	}
	return blob
}

func TestProcArgsOfMacOSAreRead(t *testing.T) {
	for _, row := range []struct {
		name string
		raw  []byte
		want procArgs
		bad  bool
	}{
		{name: "padding, spaces, Cyrillic, an empty argument",
			raw: procArgsBlob(4, "/opt/Модели и всё/python3", "", "", "", "python3", "mtplx", "", "a b", "PATH=/bin",
				"X=", "", "ignored=1"),
			want: procArgs{exe: "/opt/Модели и всё/python3", argv: []string{"python3", "mtplx", "", "a b"},
				env: []string{"PATH=/bin", "X="}}},
		{name: "no environment", raw: procArgsBlob(1, "/bin/x", "x"), want: procArgs{
			exe: "/bin/x", argv: []string{"x"}}},
		{name: "title overwrote the arguments", raw: procArgsBlob(5, "/bin/x", "omlx-server"), bad: true},
		{name: "argc beyond the data", raw: procArgsBlob(1<<30, "/bin/x", "x"), bad: true},
		{name: "no executable", raw: procArgsBlob(0, ""), bad: true},
		{name: "cut short", raw: []byte{1, 0, 0}, bad: true},
	} {
		got, err := parseProcArgs(row.raw)
		if row.bad != (err != nil) {
			t.Errorf("%s: error %v", row.name, err)
		}
		if !row.bad && !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
}

// Composed in the field format of lsof(8), not recorded on a Mac.
const lsofComposed = `p812
u501
f7
n*:8000
TST=LISTEN
f9
n127.0.0.1:8000->127.0.0.1:52311
TST=CLOSE_WAIT
f10
n[::1]:8000->[::1]:52400
TST=ESTABLISHED
p813
u501
f7
n*:8000
TST=LISTEN
p990
u501
f22
n[::1]:52400->[::1]:8000
TST=ESTABLISHED
f23
n10.0.0.5:40000->10.0.0.9:8000
TST=ESTABLISHED
`

func TestLsofClientIsNeverTheOwner(t *testing.T) {
	sockets := parseLsof(lsofComposed)
	got := listenersOf(sockets, 8000)
	want := []Listener{{Address: netip.MustParseAddrPort("0.0.0.0:8000"), UID: 501, PIDs: []int{812, 813}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("listeners %+v", got)
	}
	connections := connectionsOf(sockets, 8000)
	if len(connections) != 2 {
		t.Fatalf("connections %+v", connections)
	}
	if connections[0].State != "CLOSE_WAIT" || connections[0].ClientPIDs != nil {
		t.Errorf("abandoned request %+v", connections[0])
	}
	if !slices.Equal(connections[1].ClientPIDs, []int{990}) {
		t.Errorf("client of the open request %+v", connections[1])
	}
}

func TestLsofLinesThatDoNotParseStillMakeASocket(t *testing.T) {
	sockets := parseLsof("p12\nuabc\nf3\nnsomething odd\nTST=ESTABLISHED\nf4\n\n")
	if len(sockets) != 2 || sockets[0].pid != 12 || sockets[0].uid != -1 || sockets[0].local.IsValid() {
		t.Errorf("%+v", sockets)
	}
}

func FuzzParseProcArgs(f *testing.F) {
	f.Add(procArgsBlob(1, "/bin/x", "x", "A=1"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		args, err := parseProcArgs(raw)
		if err == nil && args.exe == "" {
			t.Error("no executable and no error")
		}
		for _, a := range append(args.argv, args.env...) {
			if strings.ContainsRune(a, 0) {
				t.Errorf("NUL in %q", a)
			}
		}
	})
}
