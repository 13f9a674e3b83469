package process

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// tcpRow is a line of /proc/net/tcp or tcp6. Inode 0 means that no process holds the socket.
type tcpRow struct {
	local, remote netip.AddrPort
	state         byte
	uid           int
	inode         string
}

// States of include/net/tcp_states.h.
const (
	established = 0x01
	synReceived = 0x03
	timeWait    = 0x06
	closed      = 0x07
	closeWait   = 0x08
	listening   = 0x0A
	newSynRecv  = 0x0C
)

var stateNames = map[byte]string{1: "ESTABLISHED", 2: "SYN_SENT", 3: "SYN_RECV", 4: "FIN_WAIT1", 5: "FIN_WAIT2",
	6: "TIME_WAIT",
	7: "CLOSED", 8: "CLOSE_WAIT", 9: "LAST_ACK", 10: "LISTEN", 11: "CLOSING", 12: "SYN_RECV"}

// parseTCPTable reads the kernel's table; the first line is its head.
func parseTCPTable(r io.Reader) ([]tcpRow, error) {
	var rows []tcpRow
	lines := bufio.NewScanner(r)
	for n := 0; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if n == 0 || len(fields) == 0 {
			continue
		}
		if len(fields) < 10 {
			return nil, fmt.Errorf("line %d has %d fields, 10 are needed", n+1, len(fields))
		}
		local, err := parseHexAddress(fields[1])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		remote, err := parseHexAddress(fields[2])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		state, err := strconv.ParseUint(fields[3], 16, 8)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		uid, err := strconv.Atoi(fields[7])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		rows = append(rows, tcpRow{local: local, remote: remote, state: byte(state), uid: uid, inode: fields[9]})
	}
	return rows, lines.Err()
}

// parseHexAddress reads "0100007F:1F40": 32-bit words in the machine's byte order, then the port.
func parseHexAddress(s string) (netip.AddrPort, error) {
	host, port, ok := strings.Cut(s, ":")
	b, err := hex.DecodeString(host)
	if !ok || err != nil || len(b) != 4 && len(b) != 16 {
		return netip.AddrPort{}, fmt.Errorf("address %q", s)
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("address %q", s)
	}
	ip, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), nil
}

func tcpTable() ([]tcpRow, error) {
	var rows []tcpRow
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(path, "6") {
			continue // IPv6 is off
		}
		if err != nil {
			return nil, err
		}
		part, err := parseTCPTable(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		rows = append(rows, part...)
	}
	return rows, nil
}

// holders maps the wanted socket inodes to the processes that hold them. Processes that hide their descriptors are
// left out.
func holders(wanted map[string]bool) map[string][]int {
	found := map[string][]int{}
	if len(wanted) == 0 {
		return found
	}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		for _, inode := range socketInodes(pid) {
			if wanted[inode] && !slices.Contains(found[inode], pid) {
				found[inode] = append(found[inode], pid)
			}
		}
	}
	for _, pids := range found {
		slices.Sort(pids)
	}
	return found
}

// socketInodes lists the sockets among the descriptors of a process, of every protocol.
func socketInodes(pid int) []string {
	folder := procPath(pid, "fd")
	descriptors, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var inodes []string
	for _, d := range descriptors {
		target, err := os.Readlink(folder + "/" + d.Name())
		if inode, ok := strings.CutPrefix(target, "socket:["); err == nil && ok {
			inodes = append(inodes, strings.TrimSuffix(inode, "]"))
		}
	}
	return inodes
}

func listeners(_ context.Context, port int) ([]Listener, error) {
	rows, err := tcpTable()
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(r tcpRow) bool {
		return r.state != listening || port != 0 && int(r.local.Port()) != port
	})
	wanted := map[string]bool{}
	for _, r := range rows {
		wanted[r.inode] = true
	}
	held := holders(wanted)
	var list []Listener
	for _, r := range rows {
		list = append(list, Listener{Address: r.local, UID: r.uid, PIDs: held[r.inode]})
	}
	return list, nil
}

// listened believes the kernel's table: a dial could connect a free ephemeral port with itself.
func listened(ctx context.Context, port int) (bool, error) {
	list, err := listeners(ctx, port)
	return len(list) > 0, err
}

func connections(_ context.Context, port int) ([]Connection, error) {
	rows, err := tcpTable()
	if err != nil {
		return nil, err
	}
	type ends struct{ local, remote netip.AddrPort }
	other := map[ends]tcpRow{}
	var ours []tcpRow
	wanted := map[string]bool{}
	for _, r := range rows {
		if int(r.remote.Port()) == port && r.inode != "0" {
			other[ends{r.remote, r.local}] = r
		}
		if int(r.local.Port()) != port || r.state == listening || r.state == timeWait || r.state == closed {
			continue
		}
		// Without an inode a socket is either not accepted yet (a client waits) or has been closed by its process.
		waiting := r.state == established || r.state == synReceived || r.state == newSynRecv || r.state == closeWait
		if r.inode == "0" && !waiting {
			continue
		}
		ours = append(ours, r)
		wanted[r.inode] = r.inode != "0"
	}
	for _, r := range ours {
		if o, ok := other[ends{r.local, r.remote}]; ok {
			wanted[o.inode] = true
		}
	}
	delete(wanted, "0")
	held := holders(wanted)
	var list []Connection
	for _, r := range ours {
		c := Connection{Local: r.local, Remote: r.remote, State: stateNames[r.state], PIDs: held[r.inode]}
		if o, ok := other[ends{r.local, r.remote}]; ok {
			c.ClientPIDs = held[o.inode]
		}
		list = append(list, c)
	}
	return list, nil
}

func openSockets(_ context.Context, pid int) (int, error) {
	if _, err := os.ReadDir(procPath(pid, "fd")); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return 0, ErrGone
		}
		return 0, ErrHidden
	}
	rows, err := tcpTable()
	if err != nil {
		return 0, err
	}
	listen := map[string]bool{}
	for _, r := range rows {
		if r.state == listening {
			listen[r.inode] = true
		}
	}
	foreign, err := nonTCPSockets()
	if err != nil {
		return 0, err
	}
	count := 0
	for _, inode := range socketInodes(pid) {
		if !listen[inode] && !foreign[inode] { // a reset socket is in no table, and counts
			count++
		}
	}
	return count, nil
}

// nonTCPSockets are the inodes of the machine's UNIX, UDP and netlink sockets. The column that holds the inode differs.
func nonTCPSockets() (map[string]bool, error) {
	inodes := map[string]bool{}
	for path, column := range map[string]int{"/proc/net/unix": 6, "/proc/net/udp": 9, "/proc/net/udp6": 9,
		"/proc/net/netlink": 9} {
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			if fields := strings.Fields(line); len(fields) > column {
				inodes[fields[column]] = true
			}
		}
	}
	return inodes, nil
}
