package plan

import (
	"slices"
	"strings"
	"testing"
)

func TestRulesThatMeanTheSameAreTheSamePlan(t *testing.T) {
	one, err := ReadNormalize([]byte("[ {\"replacement\": \"<id>\",\n \"pattern\": \"[0-9a-f]{8}\"} ]\n"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := ReadNormalize([]byte(`[{"pattern":"[0-9a-f]{8}","replacement":"\u003cid>"}]`))
	if err != nil || one != two || NormalizePath(one) != NormalizePath(two) {
		t.Fatalf("%q and %q, %v", one, two, err)
	}
	if again, err := ReadNormalize([]byte(one)); err != nil || again != one {
		t.Fatalf("the copy is read as %q, %v", again, err)
	}
	if none, err := ReadNormalize([]byte("[]")); err != nil || none != "" || NormalizePath(none) != "" {
		t.Fatalf("no rules are %q, %v", none, err)
	}
}

func TestRulesThatTheServerWouldRefuseAreRefusedBefore(t *testing.T) {
	for bad, want := range map[string]string{
		``:                                    "one JSON array",
		`{}`:                                  "one JSON array",
		`[] []`:                               "one JSON array",
		`[{"pattern":"a"}]`:                   "rule 1 needs",
		`[{"pattern":"","replacement":""}]`:   "rule 1 needs",
		`[{"pattern":"(","replacement":""}]`:  "rule 1",
		`[{"pattern":"a*","replacement":""}]`: "matches the empty text",
		`[{"pattern":"a","replacement":"","more":"x"}]`: "one JSON array",
	} {
		if rules, err := ReadNormalize([]byte(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", bad, rules, err)
		}
	}
}

// What is written and where is the person's text: the plan says it, and names the folder among the paths that it
// touches.
func TestPlanSaysThatConversationsAreKept(t *testing.T) {
	d := someDecisions()
	d.Profile.CacheMemoryBytes, d.Profile.CacheDiskBytes, d.Profile.CacheDiskDailyBytes = 512<<20, 8<<30, 64<<30
	launch, _ := Make(d).Action(LaunchAction)
	if !strings.Contains(launch.Sentence, "Your prompts and replies") ||
		!strings.Contains(launch.Sentence, "8.59 GB") ||
		!slices.Contains(launch.Touches.Paths, CachePath) {
		t.Errorf("%s %v", launch.Sentence, launch.Touches.Paths)
	}
	d.Profile.CacheDiskBytes, d.Profile.CacheDiskDailyBytes = 0, 0
	launch, _ = Make(d).Action(LaunchAction)
	if !strings.Contains(launch.Sentence, "none on disk") || slices.Contains(launch.Touches.Paths, CachePath) {
		t.Errorf("%s %v", launch.Sentence, launch.Touches.Paths)
	}
}
