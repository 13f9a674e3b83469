package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func headerFile(header string, dataBytes int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, dataBytes)...)
}

func TestHeadersThatLieAreRefusedByName(t *testing.T) {
	long := binary.LittleEndian.AppendUint64(nil, MaxHeaderBytes+1)
	for _, row := range []struct {
		name          string
		file          []byte
		tensor, found string
	}{
		{"empty file", nil, "", "0 bytes"},
		{"seven bytes", make([]byte, 7), "", "7 bytes"},
		{"header longer than the file", append(binary.LittleEndian.AppendUint64(nil, 100), "{}"...), "", "10 bytes"},
		{"header over 25 MB", long, "", "a header of 26214401 bytes"},
		{"length that is negative as an int64", binary.LittleEndian.AppendUint64(nil, 1<<63), "",
			"a header of 9223372036854775808"},
		{"not JSON", headerFile("hello", 0), "", "not valid"},
		{"a JSON list", headerFile("[]", 0), "", "not valid"},
		{"JSON cut off", headerFile(`{"a":{"dtype":"F32"`, 0), "a", "not valid"},
		{"something after the object", headerFile(`{} {}`, 0), "", "not valid"},
		{"a name twice", headerFile(
			`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`,
			2), "a", "the name twice"},
		{"unknown dtype", headerFile(`{"a":{"dtype":"Q4","shape":[1],"data_offsets":[0,1]}}`, 1), "a", `dtype "Q4"`},
		{"no dtype", headerFile(`{"a":{"shape":[1],"data_offsets":[0,1]}}`, 1), "a", `dtype ""`},
		{"one offset", headerFile(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}}`, 1), "a", "1 data offsets"},
		{"offsets as text", headerFile(`{"a":{"dtype":"U8","shape":[1],"data_offsets":["0","1"]}}`, 1), "a",
			"not valid"},
		{"end before begin", headerFile(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}`, 1), "a",
			"offsets [1,0)"},
		{"negative begin", headerFile(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[-1,1]}}`, 1), "a",
			"offsets [-1,1)"},
		{"past the data", headerFile(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 7), "a",
			"an end at 8 of 7"},
		{"size that is not the shape's", headerFile(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 8), "a",
			"4 bytes"},
		{"negative dimension", headerFile(`{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}`, 1), "a",
			"shape [-1]"},
		{"shape whose product overflows to a small size",
			headerFile(`{"a":{"dtype":"U8","shape":[4294967296,4294967296,1],"data_offsets":[0,0]}}`, 0), "a",
			"shape [4294967296"},
		{"fractional dimension", headerFile(`{"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}}`, 1), "a",
			"not valid"},
		{"overlap", headerFile(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}}`, 5), "b", "overlap a"},
		{"one inside another, a third between",
			headerFile(`{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]},"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},"c":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}}`, 9), "c", "overlap a"},
		{"nine dimensions", headerFile(`{"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}}`, 1), "a",
			"9 dimensions"},
	} {
		t.Run(row.name, func(t *testing.T) {
			size := int64(len(row.file))
			if row.name == "header over 25 MB" {
				size = 1 << 30
			}
			_, err := ReadHeader("w.safetensors", row.file, size)
			var m *MisfitError
			if !errors.As(err, &m) {
				t.Fatalf("error %v, wanted a misfit", err)
			}
			if m.File != "w.safetensors" || m.Tensor != row.tensor || !strings.Contains(m.Found, row.found) ||
				m.Wanted == "" {
				t.Errorf("%q does not say %q of tensor %q", m, row.found, row.tensor)
			}
		})
	}
}

func TestHeaderTakesWhatTheFormatAllows(t *testing.T) {
	for _, row := range []struct {
		name string
		file []byte
		want string
	}{
		{"no tensors", headerFile("{}", 0), ""},
		{"padding after the object", headerFile("{}   \x00", 0), ""},
		{"metadata of any shape", headerFile(`{"__metadata__":{"a":"b"}}`, 0), ""},
		{"an odd offset for two-byte elements",
			headerFile(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[1,5]}}`, 5), "a[0,1) b[1,5) "},
		{"a scalar and an empty tensor",
			headerFile(`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]}}`, 4), "a[0,4) b[4,4) "},
		{"a hole", headerFile(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[9,10]}}`, 10), "a[0,1) b[9,10) "},
	} {
		t.Run(row.name, func(t *testing.T) {
			entries, err := ReadHeader("w", row.file, int64(len(row.file)))
			if err != nil {
				t.Fatal(err)
			}
			start := 8 + int64(binary.LittleEndian.Uint64(row.file))
			got := ""
			for _, e := range entries {
				got += fmt.Sprintf("%s[%d,%d) ", e.Name, e.Begin-start, e.End-start)
			}
			if got != row.want {
				t.Errorf("entries %q, wanted %q", got, row.want)
			}
		})
	}
}

// FuzzHeader: no bytes cause a panic, and accepted tensors are inside the file and do not overlap.
func FuzzHeader(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(headerFile("{}", 0))
	f.Add(headerFile(`{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[24,26]}}`, 26))
	f.Add(headerFile(`{"a":{"dtype":"U8","shape":[9223372036854775807,2],"data_offsets":[0,9223372036854775807]}}`, 3))
	f.Add(headerFile(`{"a":null,"b":[],"c":{"shape":null,"data_offsets":null}}`, 3))
	f.Fuzz(func(t *testing.T, file []byte) {
		entries, err := ReadHeader("f", file, int64(len(file)))
		var m *MisfitError
		if err != nil {
			if !errors.As(err, &m) {
				t.Fatalf("%T, wanted a misfit: %v", err, err)
			}
			return
		}
		end := int64(0)
		for _, e := range entries {
			if e.Begin < 8 || e.End > int64(len(file)) || e.Begin > e.End {
				t.Fatalf("%s is at [%d,%d) of %d", e.Name, e.Begin, e.End, len(file))
			}
			if e.Begin == e.End {
				continue
			}
			if e.Begin < end {
				t.Fatalf("%s overlaps", e.Name)
			}
			end = e.End
		}
	})
}
