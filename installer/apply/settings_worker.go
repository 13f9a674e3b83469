package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"

	"slipway/atomicfile"
	"slipway/fault"
	"slipway/installer/plan"
	"slipway/termtext"
)

// Settings is what set-up decided, for up, status and upgrade.
type Settings struct {
	SchemaVersion int            `json:"schema_version"`
	Decisions     plan.Decisions `json:"decisions"`
}

// SettingsError: the settings cannot be used. Set-up writes them again and sets the damaged file aside.
type SettingsError struct{ Why string }

func (e *SettingsError) Error() string { return plan.SettingsPath + " " + e.Why }

// Fault: see package fault.
func (e *SettingsError) Fault() fault.Fault {
	return fault.Fault{Class: fault.Integrity, Step: fault.RewriteSettings}
}

// maxSettingsBytes bounds what is read; settings have about 3 KB, and up to 64 KB of normalize rules, escaped.
const maxSettingsBytes = 1 << 20

// ReadSettings reads the settings of a home. Errors: fs.ErrNotExist when nothing was set up, *SettingsError.
func ReadSettings(home *Home) (Settings, error) {
	info, err := home.Root.Lstat(plan.SettingsPath)
	if err != nil {
		return Settings{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSettingsBytes {
		return Settings{}, &SettingsError{"is no file of the size of settings"}
	}
	data, err := home.Root.ReadFile(plan.SettingsPath)
	if err != nil {
		return Settings{}, err
	}
	var s Settings
	if err := json.Unmarshal(termtext.WithoutMark(data), &s); err != nil {
		return Settings{}, &SettingsError{"is damaged: " + err.Error()}
	}
	switch {
	case s.SchemaVersion > plan.SchemaVersion:
		return Settings{}, &SettingsError{"was written by a newer slipway"}
	case s.Decisions.Model.ID == "" || s.Decisions.Request.Port < 1 || s.Decisions.Request.Port > 65535:
		return Settings{}, &SettingsError{"is damaged: it names no model or no port"}
	}
	return s, nil
}

type settingsWorker struct{ decisions plan.Decisions }

// bytes leaves out the wish to launch and the servers that are stopped for it: neither is a setting.
func (w settingsWorker) bytes() []byte {
	d := w.decisions
	d.Request.Launch = true
	d.Request.AllowStop, d.Request.AcceptLoss, d.Request.IdleForS, d.Stops, d.RebootAgent = "", false, 0, nil, ""
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(Settings{SchemaVersion: plan.SchemaVersion, Decisions: d}); err != nil {
		panic("apply: settings that cannot be written: " + err.Error())
	}
	return out.Bytes()
}

func (w settingsWorker) Check(_ context.Context, home *Home) (Condition, error) {
	if home == nil {
		return Condition{}, nil
	}
	info, err := home.Root.Lstat(plan.SettingsPath)
	if errors.Is(err, fs.ErrNotExist) {
		return Condition{}, nil
	}
	if err != nil {
		return Condition{}, err
	}
	if !info.Mode().IsRegular() {
		return Condition{Conflict: plan.SettingsPath + " is no plain file, and the settings must be there"}, nil
	}
	return Condition{Done: w.saved(home) && w.rulesKept(home) && w.keyKept(home)}, nil
}

func (w settingsWorker) Do(_ context.Context, home *Home, _ func(Event)) (Outcome, error) {
	out := Outcome{Items: []Item{{Kind: FileItem, Path: plan.SettingsPath}}}
	if name := plan.NormalizePath(w.decisions.Request.Normalize); name != "" {
		out.Items = append(out.Items, Item{Kind: FileItem, Path: name})
	}
	if w.decisions.Request.AllowOrigins != "" {
		out.Items = append(out.Items, Item{Kind: FileItem, Path: plan.OriginKeyPath})
	}
	if w.saved(home) && w.rulesKept(home) && w.keyKept(home) {
		return out, nil
	}
	if err := setAsideSettings(home); err != nil {
		return out, err
	}
	return out, w.write(home)
}

// saved reports whether the settings say what was decided, however a person has laid them out.
func (w settingsWorker) saved(home *Home) bool {
	set, err := ReadSettings(home)
	return err == nil && set.SchemaVersion == plan.SchemaVersion &&
		bytes.Equal(settingsWorker{set.Decisions}.bytes(), w.bytes())
}

// rulesKept reports whether the copy of the normalize rules is what was decided.
func (w settingsWorker) rulesKept(home *Home) bool {
	rules := w.decisions.Request.Normalize
	if rules == "" {
		return true
	}
	data, err := home.Root.ReadFile(plan.NormalizePath(rules))
	return err == nil && string(data) == rules
}

// keyKept reports whether pages of allowed origins, where there are any, have a key to send.
func (w settingsWorker) keyKept(home *Home) bool {
	return w.decisions.Request.AllowOrigins == "" || originKeySHA256(home) != ""
}

// write puts the rules and the key beside the settings, then the settings, and removes rules that are no longer in
// force.
func (w settingsWorker) write(home *Home) error {
	rules := plan.NormalizePath(w.decisions.Request.Normalize)
	if rules != "" {
		if err := atomicfile.Replace(home.Root, rules, []byte(w.decisions.Request.Normalize), 0o600); err != nil {
			return err
		}
	}
	if w.decisions.Request.AllowOrigins != "" {
		if err := makeOriginKey(home); err != nil {
			return err
		}
	}
	if err := atomicfile.Replace(home.Root, plan.SettingsPath, w.bytes(), 0o600); err != nil {
		return err
	}
	names, err := readNames(home.Root, path.Dir(plan.SettingsPath))
	if err != nil {
		return err
	}
	for _, name := range names {
		if old := path.Join(path.Dir(plan.SettingsPath), name); ruleCopy.MatchString(name) && old != rules {
			if err := home.Root.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

var ruleCopy = whole(normalizeName)

// setAsideSettings moves damaged settings out of the way; good ones stay.
func setAsideSettings(home *Home) error {
	var damaged *SettingsError
	if _, err := ReadSettings(home); !errors.As(err, &damaged) {
		return nil
	}
	_, err := setAside(home, plan.SettingsPath, plan.SettingsPath+".damaged-")
	return err
}

// WriteSettings writes settings as they were. The caller holds the lock.
func WriteSettings(home *Home, s Settings) error {
	return settingsWorker{s.Decisions}.write(home)
}
