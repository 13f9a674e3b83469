package consent

import (
	"errors"
	"testing"

	"slipway/installer/plan"
)

func TestIsYes(t *testing.T) {
	for answer, want := range map[string]bool{
		"y": true, "Y": true, "yes": true, " Yes ": true, "д": true, "да": true, "ДА": true, "Да\r": true,
		"": false, "n": false, "no": false, "нет": false, "yess": false, "y es": false, "дa": false, /* a Latin a */
		"ok": false, "1": false,
	} {
		if isYes(answer) != want {
			t.Errorf("%q: %v", answer, !want)
		}
	}
}

func TestCursorReportIsFoundAmongTypedText(t *testing.T) {
	for _, row := range []struct {
		name, in, typed string
		ok              bool
	}{
		{"alone", "\x1b[12;40R", "", true},
		{"typed before", "ye\x1b[1;1R", "ye", true},
		{"typed after", "\x1b[1;1Rs", "s", true},
		{"half", "\x1b[12;4", "", false},
		{"an arrow key", "\x1b[A", "", false},
		{"no column", "\x1b[12R", "", false},
		{"text only", "yes\n", "", false},
	} {
		before, after, ok := cutCursorReport([]byte(row.in))
		if ok != row.ok || string(before)+string(after) != row.typed {
			t.Errorf("%s: %q %q %v", row.name, before, after, ok)
		}
	}
}

func TestYesNeverCoversWhatOnlyTheHubVouchesForNorOtherPeoplesServers(t *testing.T) {
	actions := func(classes ...plan.Class) (plan.Plan, plan.Assessment) {
		return plan.Plan{Digest: "sha256:a", Actions: []plan.Action{{ID: "x", Consent: classes}}},
			plan.Assessment{States: map[string]plan.State{"x": plan.Pending}}
	}
	for _, row := range []struct {
		name    string
		grants  Grants
		classes []plan.Class
		allowed bool
	}{
		{"yes covers the ordinary", Yes(), []plan.Class{plan.Read, plan.Download, plan.Write, plan.Build, plan.Launch},
			true},
		{"yes does not cover told", Yes(), []plan.Class{plan.Download, plan.Unproven}, false},
		{"told by name", Yes().With(plan.Unproven), []plan.Class{plan.Download, plan.Unproven}, true},
		{"yes does not cover stopping", Yes(), []plan.Class{plan.Stop}, false},
		{"yes does not cover the LAN", Yes(), []plan.Class{plan.OpenLAN}, false},
		{"nothing covers reading only", Of(), []plan.Class{plan.Read}, true},
		{"nothing does not cover writing", Of(), []plan.Class{plan.Write}, false},
		{"this digest covers all of it", Digest("sha256:a"), []plan.Class{plan.Unproven, plan.Stop}, true},
		{"another digest covers nothing", Digest("sha256:b"), []plan.Class{plan.Write}, false},
		{"no digest is not the digest of a plan without one", Digest(""), []plan.Class{plan.Write}, false},
	} {
		p, s := actions(row.classes...)
		err := row.grants.Check(p, s)
		var needed *NeededError
		if (err == nil) != row.allowed || err != nil && !errors.As(err, &needed) {
			t.Errorf("%s: %v", row.name, err)
		}
		s.States["x"] = plan.Done
		if err := row.grants.Check(p, s); err != nil {
			t.Errorf("%s: a done action needs consent: %v", row.name, err)
		}
	}
}
