package neighbor

import (
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"slipway/installer/launch"
	"slipway/installer/neighbor/record"
)

// points are all steps of stop and restore at which one of our processes can be killed.
var points = []string{
	"launch held", "launch recorded", "launch watched", "launch checked", "launch marked", "launch asked",
	"launch ended", "launch exited",
	"watch-restore situation", "watch-restore started", "watch-restore deleted",
	"restore situation", "restore started", "restore deleted",
	"restore-exec locked", "restore-exec exec",
}

// settle runs `restore` as slipway's next runs would, until nothing is pending, and then demands one running neighbour.
func settle(t *testing.T, s *System, d *double, what string) {
	t.Helper()
	eventually(t, what+": nothing is pending", func() bool {
		exec.Command(s.Program[0], "slipway", "restore", "--home", s.Home).Run()
		list, err := s.Pending()
		return err == nil && len(list) == 0
	})
	eventually(t, what+": it answers", func() bool { return d.answers("/health") })
	eventually(t, what+": no watcher is left", func() bool { return len(helpers(t, s, "watch-restore")) == 0 })
	if running := d.running(); len(running) != 1 {
		t.Fatalf("%s: running %v, log %q", what, running, d.log())
	}
	if d.count("refused") != 0 {
		t.Fatalf("%s: it was started twice, log %q", what, d.log())
	}
	if starts, ends := d.count("start"), d.count("end"); starts != ends+1 {
		t.Fatalf("%s: %d starts, %d ends, log %q", what, starts, ends, d.log())
	}
}

func TestKilledAtEveryStepOfStopAndRestore(t *testing.T) {
	killAt(t, newDouble(t, "mtplx").set("load_ms", "60").set("exit_ms", "30").start(), points)
}

// The server of another home is that home's own again, wherever one of our processes was killed.
func TestServerOfAnotherHomeSurvivesKills(t *testing.T) {
	d, home, root := homeServer(t)
	some := points
	if os.Getenv("SLIPWAY_SOAK") == "" {
		some = []string{"launch marked", "launch exited", "restore deleted", "restore-exec exec"}
	}
	killAt(t, d, some)
	status := lookAtHome(t, root, home)
	if _, err := root.Stat(record.StoppedByPath); err == nil || status.State != launch.Running ||
		status.Record.Process.PID != d.running()[0] || !status.Recorded() {
		t.Errorf("%+v, running %v", status, d.running())
	}
}

func killAt(t *testing.T, d *double, points []string) {
	t.Helper()
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			s := newSystem(t)
			kill := filepath.Join(s.Home, "kill")
			if err := os.WriteFile(kill, []byte(point), 0o600); err != nil {
				t.Fatal(err)
			}
			l := launcherOf(t, s, d.port)
			said := <-l.said
			verb, _, _ := cut(point)
			if verb == "restore" { // the next run, without a watcher that would be faster
				killWatchers(t, s)
			}
			l.kill()
			if verb == "watch-restore" { // the watcher, before a next run is faster
				eventually(t, "the watcher has died", func() bool { return len(helpers(t, s, "watch-restore")) == 0 })
			}
			settle(t, s, d, point)
			if _, err := os.Stat(kill + ".done"); err != nil {
				t.Errorf("no process died at %q (the launcher said %q)", point, said)
			}
		})
	}
}

func cut(point string) (verb, step string, ok bool) {
	n, err := fmt.Sscan(point, &verb, &step)
	return verb, step, err == nil && n == 2
}

// rounds is 20 in the normal run, 200 in the long one.
func rounds() int {
	if os.Getenv("SLIPWAY_SOAK") != "" {
		return 200
	}
	return 20
}

func TestKilledAtRandomMoments(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	d := newDouble(t, "mtplx").set("load_ms", "40").set("exit_ms", "20").start()
	for round := range rounds() {
		s := newSystem(t)
		// One in four rounds the neighbour has work: then it must not have been stopped at all.
		busy := round%4 == 3
		ends := d.count("end")
		if busy {
			d.mode("busy")
		}
		d.quiet()
		l := launcherOf(t, s, d.port)
		time.Sleep(time.Duration(random.Intn(700)) * time.Millisecond)
		l.kill()
		if random.Intn(2) == 0 { // the watcher dies too: the next run is left
			time.Sleep(time.Duration(random.Intn(120)) * time.Millisecond)
			killWatchers(t, s)
		}
		if random.Intn(3) == 0 { // and so does that one
			next := exec.Command(s.Program[0], "slipway", "restore", "--home", s.Home)
			if err := next.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(random.Intn(120)) * time.Millisecond)
			next.Process.Kill()
			next.Wait()
		}
		settle(t, s, d, fmt.Sprintf("round %d of seed %d", round, seed))
		if busy && d.count("end") != ends {
			t.Fatalf("round %d of seed %d: a busy neighbour was stopped", round, seed)
		}
		d.mode("idle")
	}
}
