package neighbor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/installer/neighbor/record"
)

func TestServerWithLossesIsStoppedOnlyIfTheyAreAccepted(t *testing.T) {
	for _, row := range []struct {
		name, says string
		make       func(t *testing.T) *double
	}{
		{"a variable that is not on the list", "PYTHONPATH", func(t *testing.T) *double {
			return newDouble(t, "mtplx", withEnv("PYTHONPATH=/very-secret")).start()
		}},
		{"a secret of its own", "MTPLX_API_KEY", func(t *testing.T) *double {
			return newDouble(t, "mtplx", withEnv("MTPLX_API_KEY=very-secret")).start()
		}},
		{"a key in the command line", "--api-key", func(t *testing.T) *double {
			return newDouble(t, "mtplx", withArgs("serve", "--api-key", "very-secret")).start()
		}},
		{"a folder that is gone", "working folder is gone", func(t *testing.T) *double {
			cwd := filepath.Join(t.TempDir(), "gone")
			os.Mkdir(cwd, 0o700)
			d := newDouble(t, "mtplx", withCwd(cwd)).start()
			os.Remove(cwd)
			return d
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSystem(t)
			d := row.make(t)
			server := d.found(s)
			_, err := s.Stop(ctx, []Server{server}, StopOptions{})
			loss := new(LossError)
			if !errors.As(err, &loss) || !strings.Contains(err.Error(), row.says) ||
				strings.Contains(err.Error(), "very-secret") {
				t.Fatalf("error %v", err)
			}
			if d.count("end") != 0 || len(must(s.folder().List())) != 0 {
				t.Errorf("log %q", d.log())
			}
			records, err := s.Stop(ctx, []Server{server}, StopOptions{AcceptLoss: true})
			if err != nil {
				t.Fatal(err)
			}
			if o := s.restoreOne(ctx, records[0], nil); o.Result != Restored {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestVariablesOfTheTerminalDoNotPreventAStop(t *testing.T) {
	s := newSystem(t)
	d := newDouble(t, "mtplx", withEnv("SSH_AUTH_SOCK=/very-secret", "XAUTHORITY=/x", "PWD=/", "OLDPWD=/",
		"TOKENIZERS_PARALLELISM=false")).start()
	server := d.found(s)
	if len(server.Losses) != 0 || !slices.ContainsFunc(server.Missing, func(m string) bool {
		return strings.Contains(m, "OLDPWD, PWD, SSH_AUTH_SOCK, TOKENIZERS_PARALLELISM, XAUTHORITY") &&
			!strings.Contains(m, "very-secret")
	}) {
		t.Errorf("losses %q, missing %q", server.Losses, server.Missing)
	}
	d.onlyRecordLeft(s)
	if o := one(t, s); o.Result != Restored || strings.Contains(o.Sentence, "without") {
		t.Errorf("%+v", o)
	}
}

func TestLossIsShownBeforeAndAfterTheRestore(t *testing.T) {
	s := newSystem(t)
	cwd := filepath.Join(t.TempDir(), "папка")
	os.Mkdir(cwd, 0o700)
	d := newDouble(t, "mtplx", withCwd(cwd), withEnv("PYTHONPATH=/very-secret")).start()
	t.Setenv("TEST_ACCEPT_LOSS", "1")
	d.onlyRecordLeft(s)
	os.RemoveAll(cwd)
	before, err := s.Restore(ctx, true)
	if err != nil || len(before) != 1 {
		t.Fatalf("%+v, %v", before, err)
	}
	after := one(t, s)
	if after.Result != Restored {
		t.Fatalf("%+v", after)
	}
	log, err := os.ReadFile(filepath.Join(s.Home, after.Log))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"before": before[0].Sentence, "after": after.Sentence,
		"log": string(log)} {
		if !strings.Contains(text, "PYTHONPATH") || !strings.Contains(text, "папка") ||
			!strings.Contains(text, "gone") || strings.Contains(text, "very-secret") {
			t.Errorf("%s: %q", name, text)
		}
	}
}

func TestChangedProgramIsStartedOnlyOnRequest(t *testing.T) {
	s := newSystem(t)
	copied := filepath.Join(t.TempDir(), "mtplx")
	b, err := os.ReadFile(program(t, "mtplx"))
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile(copied, b, 0o700)
	d := newDouble(t, "mtplx", withProgram(copied)).start()
	l := d.stoppedBy(s)
	os.Remove(copied)
	os.WriteFile(copied, append(slices.Clone(b), 0), 0o700) // an upgrade: the same path, other bytes, and it works
	l.kill()
	eventually(t, "the watcher says no and ends", func() bool {
		list := must(s.folder().List())
		return len(list) == 1 && list[0].State == record.StateFailed && len(helpers(t, s, "watch-restore")) == 0
	})
	if o := one(t, s); o.Result != Failed || !strings.Contains(o.Sentence, "changed since it was stopped") ||
		!strings.Contains(o.Sentence, "--changed-program") {
		t.Errorf("%+v", o)
	}
	if list, err := s.Pending(); err != nil || len(list) != 1 ||
		!strings.Contains(list[0].Sentence, "--changed-program") {
		t.Errorf("%+v, %v", list, err)
	}
	if d.count("start") != 1 {
		t.Fatalf("log %q", d.log())
	}
	s.ChangedPrograms = true
	if o := one(t, s); o.Result != Restored || len(d.running()) != 1 {
		t.Errorf("asked for: %+v", o)
	}
}

func TestSettingsThatLMStudioCannotGiveBackAreALoss(t *testing.T) {
	settings := func(config string) []record.Model {
		return []record.Model{{ID: "m", Path: "key", Settings: []byte(`{"key":"key","config":` + config + `}`)}}
	}
	if losses := lmStudioLosses(settings(`{"context_length":8192,"parallel":4}`)); len(losses) != 0 {
		t.Errorf("%q", losses)
	}
	losses := lmStudioLosses(settings(`{"context_length":8192,"flash_attention":true,"eval_batch_size":512}`))
	if len(losses) != 1 || !strings.Contains(losses[0], "eval_batch_size, flash_attention") {
		t.Errorf("%q", losses)
	}
	// Another model under the same name is another model.
	if !anotherModel(settings("{}"), []record.Model{{ID: "m", Path: "other"}}) ||
		anotherModel(settings("{}"), settings("{}")) || anotherModel(settings("{}"), nil) {
		t.Error("a model is recognised by its name alone")
	}
}
