package process

import (
	"context"
	"net"
	"os"
	"slices"
	"testing"
	"time"
)

func listen(t *testing.T, address string) (net.Listener, int) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, l.Addr().(*net.TCPAddr).Port
}

// until asks again for a while: the kernel's tables follow a close or connect within milliseconds, not at once.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

func conns(t *testing.T, port int) []Connection {
	t.Helper()
	list, err := Connections(context.Background(), port)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestListenerIsFoundByItsHolder(t *testing.T) {
	for name, address := range map[string]string{"loopback": "127.0.0.1:0", "every address": ":0", "IPv6": "[::1]:0"} {
		t.Run(name, func(t *testing.T) {
			_, port := listen(t, address)
			found, err := Listeners(context.Background(), port)
			if err != nil || len(found) != 1 {
				t.Fatalf("found %+v, %v", found, err)
			}
			if pid, ok := Owner(found[0]); !ok || pid != os.Getpid() {
				t.Errorf("owner %d %v", pid, ok)
			}
			if taken, err := Listened(context.Background(), port); err != nil || !taken {
				t.Errorf("listened %v, %v", taken, err)
			}
		})
	}
}

func TestAbandonedAndUnacceptedRequestsCount(t *testing.T) {
	l, port := listen(t, "127.0.0.1:0")
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if got := conns(t, port); len(got) != 1 || got[0].State != "ESTABLISHED" ||
		!slices.Contains(got[0].ClientPIDs, os.Getpid()) {
		t.Errorf("a client that the server has not accepted: %+v", got)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	before, err := OpenSockets(context.Background(), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
	until(t, "CLOSE_WAIT is seen", func() bool {
		got := conns(t, port)
		return len(got) == 1 && got[0].State == "CLOSE_WAIT" && slices.Contains(got[0].PIDs, os.Getpid())
	})
	if after, err := OpenSockets(context.Background(), os.Getpid()); err != nil || after != before-1 {
		t.Errorf("%d sockets before the client left, %d after (%v): the server's end still counts", before, after, err)
	}
	server.Close()
	until(t, "nothing is left", func() bool { return len(conns(t, port)) == 0 })
}

func TestPortWithOnlyOldConnectionsIsFree(t *testing.T) {
	l, port := listen(t, "127.0.0.1:0")
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server.Close() // the side that closes first keeps TIME_WAIT
	client.Close()
	l.Close()
	if taken, err := Listened(context.Background(), port); err != nil || taken {
		t.Errorf("listened %v, %v", taken, err)
	}
}

func TestSocketOfUnrelatedHoldersHasNoOwner(t *testing.T) {
	one, two := sleeper(t, "sleep", "100"), sleeper(t, "sleep", "100")
	if pid, ok := Owner(Listener{PIDs: []int{one.Process.Pid, two.Process.Pid}}); ok {
		t.Errorf("siblings: owner %d", pid)
	}
	if pid, ok := Owner(Listener{PIDs: []int{os.Getpid(), two.Process.Pid}}); !ok || pid != os.Getpid() {
		t.Errorf("parent and child: owner %d %v", pid, ok)
	}
	if _, ok := Owner(Listener{}); ok {
		t.Error("hidden holders have an owner")
	}
}

func TestChildrenAreFound(t *testing.T) {
	child := sleeper(t, "sleep", "100")
	got, err := Children(os.Getpid())
	if err != nil || !slices.Contains(got, child.Process.Pid) {
		t.Errorf("children %v, %v", got, err)
	}
}
