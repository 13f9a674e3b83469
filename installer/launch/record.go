package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"slipway/atomicfile"
	"slipway/installer/neighbor/record"
	"slipway/installer/process"
)

// Paths below the home.
const (
	RecordPath = "run/server.json"
	aliveLock  = "run/server.lock"
	LogPath    = "logs/server.log"
)

// Settings is what a server is started with. Two servers with equal settings are the same to a caller.
type Settings struct {
	Program       string `json:"program"` // below the home, slashes
	ProgramSHA256 string `json:"program_sha256"`
	ModelFolder   string `json:"model_folder"` // below the home, slashes; absolute where the model is used in place
	ModelID       string `json:"model_id"`
	Revision      string `json:"revision"`
	Device        string `json:"device"`
	Host          string `json:"host"`
	Port          int    `json:"port"`
	MonitorPort   int    `json:"monitor_port"` // of the monitor page; 0: none
	WindowTokens  int    `json:"window_tokens"`
	Parallel      int    `json:"parallel"`
	KVFormat      string `json:"kv_format"`
	PrefillPolicy string `json:"prefill_policy"`
	Draft         string `json:"draft"`
	DraftFolder   string `json:"draft_folder,omitempty"` // below the home, slashes; empty: with the model
	BudgetBytes   int64  `json:"budget_bytes"`           // what the plan counted on; 0 when it counted on nothing
	ModelBytes    int64  `json:"model_bytes"`            // bounds the time that loading may take
	Profile       string `json:"profile"`

	CacheMemoryBytes    int64  `json:"cache_memory_bytes"`
	CacheDisk           string `json:"cache_disk"` // below the home, slashes; empty: none, and the two below are 0
	CacheDiskBytes      int64  `json:"cache_disk_bytes"`
	CacheDiskDailyBytes int64  `json:"cache_disk_daily_bytes"`
	NormalizeFile       string `json:"normalize_file"` // below the home, slashes, named for its content; empty: none

	AllowHosts   string `json:"allow_hosts,omitempty"`   // with commas between; empty: none
	AllowOrigins string `json:"allow_origins,omitempty"` // with commas between; empty: none
	OriginKey    string `json:"origin_key,omitempty"`    // file below the home, slashes; empty: none
	// OriginKeySHA256 names the key in that file, so that another key is another setting.
	OriginKeySHA256 string `json:"origin_key_sha256,omitempty"`
}

// Digest names the settings.
func (s Settings) Digest() string {
	data, err := json.Marshal(s)
	if err != nil {
		panic("launch: settings that cannot be written: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Record is what run/server.json holds. Process has PID 0 between the decision to start and the start.
type Record struct {
	LaunchID string           `json:"launch_id"`
	Settings Settings         `json:"settings"`
	Process  process.Identity `json:"process"`
	Started  time.Time        `json:"started"`
	Attached bool             `json:"attached"` // a terminal is attached: it ends with it
}

// RecordError: the record is not one that slipway wrote. A living server is found without it, and the next start or
// stop sets the file aside.
type RecordError struct{ Why string }

func (e *RecordError) Error() string { return RecordPath + " is damaged: " + e.Why }

// maxRecordBytes bounds what is read; a record has about 1 KB.
const maxRecordBytes = 1 << 20

// readRecord reads the record. Errors: fs.ErrNotExist when no server was started since the last stop, *RecordError.
func readRecord(root *os.Root) (Record, error) {
	info, err := root.Lstat(RecordPath)
	if err != nil {
		return Record{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxRecordBytes {
		return Record{}, &RecordError{"it is no file of the size of a record"}
	}
	data, err := root.ReadFile(RecordPath)
	if err != nil {
		return Record{}, err
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, &RecordError{err.Error()}
	}
	if r.LaunchID == "" || r.Settings.Port < 1 {
		return Record{}, &RecordError{"it names no launch"}
	}
	return r, nil
}

// setAside moves a damaged record out of the way; what is in it may still help a person. It leaves a good one.
func setAside(root *os.Root) error {
	var damaged *RecordError
	if _, err := readRecord(root); !errors.As(err, &damaged) {
		return nil
	}
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s.damaged-%d", RecordPath, n)
		if _, err := root.Lstat(name); err == nil {
			continue
		}
		return root.Rename(RecordPath, name)
	}
}

func writeRecord(root *os.Root, r any) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Replace(root, RecordPath, append(data, '\n'), 0o600)
}

// removeRecord removes the record, or sets it aside when it is damaged. Who decides that no server runs decides against
// another slipway that would start it again.
func removeRecord(root *os.Root) error {
	if err := setAside(root); err != nil {
		return err
	}
	if err := record.RemoveStoppedBy(root); err != nil {
		return err
	}
	if err := root.Remove(RecordPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// takeAlive takes the lock that a living server holds. nil, false: a server that this home started lives, noted or not.
// On file systems without locks the answer is always true, and the record decides alone.
func takeAlive(root *os.Root) (*os.File, bool, error) {
	f, err := root.OpenFile(aliveLock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, err
	}
	// Whoever looks whether a server lives has the lock for an instant.
	for range 20 {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		f.Close()
		return nil, false, nil
	}
	return f, true, nil
}

// lives reports whether some server of this home holds its lock. It writes nothing.
func lives(root *os.Root) bool {
	f, err := root.Open(aliveLock)
	if err != nil {
		return false
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK)
}
