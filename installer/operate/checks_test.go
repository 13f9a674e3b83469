package operate

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slipway/checks/suite"
	"slipway/fault"
)

// Of a server that may not be changed nothing is asked, let alone set, and no file of the home is written for it.
func TestChecksRefuseWhatNoFlagWouldAllowBeforeAServerIsAsked(t *testing.T) {
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.NotFound(w, nil)
	}))
	defer other.Close()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	o, minus := operator(t, &caller{}, home), -1
	server := ServerInput{URL: other.URL, Patience: time.Minute}
	undrafted := server
	undrafted.DraftTokens = &minus
	good := suite.Input{Samples: 1, MaxTokens: 64}
	_, keep := o.MeasureDrafts(t.Context(), MeasureDraftsInput{Server: server, Keep: true,
		SweepInput: suite.SweepInput{MaxTokens: 64}})
	_, sweep := o.MeasureDrafts(t.Context(), MeasureDraftsInput{Server: server})
	_, first := o.CheckCompare(t.Context(), CompareInput{Input: good, A: undrafted, B: server})
	_, second := o.CheckCompare(t.Context(), CompareInput{Input: good, A: server, B: undrafted})
	_, mixed := o.CheckCompare(t.Context(), CompareInput{Input: good, A: server, FileB: "b.jsonl"})
	_, impatient := o.CheckTools(t.Context(), ToolsInput{CheckedServer{Server: ServerInput{URL: other.URL}}, good})
	_, none := o.CheckTools(t.Context(), ToolsInput{CheckedServer{Server: server}, suite.Input{MaxTokens: 1}})
	_, card := o.CheckAll(t.Context(), CardInput{CheckedServer{Server: server}, suite.Input{}})
	_, measure := o.Measure(t.Context(), MeasureInput{Server: server})
	_, needle := o.CheckNeedle(t.Context(), NeedleInput{CheckedServer{Server: server},
		suite.NeedleInput{Input: good}})
	for _, c := range []struct {
		names string
		err   error
	}{
		{"--keep is for the server that slipway started", keep}, {"--max-tokens is 0", sweep},
		{"--draft-tokens is -1", first}, {"--draft-tokens-b is -1", second}, {"not one of each", mixed},
		{"--patience", impatient}, {"--samples is 0", none}, {"--max-tokens is 0", card},
		{"--max-tokens is 0", measure}, {"--codes", needle},
	} {
		if c.err == nil || classOfError(c.err) != fault.Usage || !strings.Contains(c.err.Error(), c.names) {
			t.Errorf("wanted %q: %v", c.names, c.err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the server was asked %d times", n)
	}
	if _, err := os.Lstat(home); err == nil {
		t.Error("a home was made")
	}
}

func TestAnswersOfChecksNeedAFolder(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := operator(t, &caller{}, filepath.Join(dir, "home"))
	_, _, err = o.answersFolder("")
	if e, ok := errors.AsType[*Error](err); !ok || e.Of.Class != fault.Usage || e.Of.Step != fault.GiveFolder {
		t.Errorf("without a home: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := o.answersFolder(file); classOfError(err) != fault.Usage ||
		!strings.Contains(err.Error(), "--out: not a directory") {
		t.Errorf("a file: %v", err)
	}
	path, folder, err := o.answersFolder(filepath.Join(dir, "answers"))
	if err != nil || path != filepath.Join(dir, "answers") {
		t.Fatalf("%q, %v", path, err)
	}
	folder.Close()
}
