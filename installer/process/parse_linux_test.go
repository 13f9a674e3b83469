package process

import (
	"net/netip"
	"strings"
	"testing"
)

func TestStatOfAProgramNameWithParenthesesIsRead(t *testing.T) {
	s, err := parseStat("77 (a) R 1 (b c) S 42 1 1 0 -1 4194304 9 0 0 0 250 50 0 0 20 0 1 0 987654 1 2 3")
	if err != nil {
		t.Fatal(err)
	}
	if s != (stat{state: 'S', parent: 42, cpuTicks: 300, startTicks: 987654}) {
		t.Errorf("%+v", s)
	}
	for _, bad := range []string{"", "77 (a", "77 (a) S 1 2", "77 (a) S x 1 1 0 -1 4 9 0 0 0 1 1 0 0 20 0 1 0 9 1"} {
		if _, err := parseStat(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestKernelTableRowsAreRead(t *testing.T) {
	rows, err := parseTCPTable(
		strings.NewReader(`  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 624 1
   1: 00000000000000000000000001000000:1F40 00000000000000000000000001000000:CB3F 08 00000000:00000000 00:00000000 00000000  1000        0 625 1
   2: 0000000000000000FFFF00000100007F:1F40 0000000000000000FFFF00000100007F:CB40 06 00000000:00000000 00:00000000 00000000     0        0 0 1
`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []tcpRow{
		{netip.MustParseAddrPort("127.0.0.1:8000"), netip.MustParseAddrPort("0.0.0.0:0"), listening, 1000, "624"},
		{netip.MustParseAddrPort("[::1]:8000"), netip.MustParseAddrPort("[::1]:52031"), closeWait, 1000, "625"},
		{netip.MustParseAddrPort("127.0.0.1:8000"), netip.MustParseAddrPort("127.0.0.1:52032"), timeWait, 0, "0"},
	} {
		if rows[i] != want {
			t.Errorf("row %d is %+v", i, rows[i])
		}
	}
	for _, bad := range []string{"h\n1: 0100007F:1F40\n", "h\n0: 01007F:1F40 00000000:0000 0A 0:0 0:0 0 0 0 624 1\n"} {
		if _, err := parseTCPTable(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
