package termtext

import "testing"

func TestMistypedNameLeadsToTheNearest(t *testing.T) {
	names := []string{"setup", "plan", "status", "--model", "--memory", "--max-download", "--port"}
	for typed, want := range map[string]string{"setpu": "setup", "setupp": "setup", "--moddel": "--model",
		"--max-dowload": "--max-download", "statsu": "status", "x": "", "nonsense": "", "--in-place": "", "": ""} {
		if got := Nearest(typed, names); got != want {
			t.Errorf("%q leads to %q, want %q", typed, got, want)
		}
	}
}
