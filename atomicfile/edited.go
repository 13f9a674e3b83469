package atomicfile

import "bytes"

// Edited says what an editor has added to the bytes of a file that only programs write: a byte order mark, or the ends
// of lines of Windows. Empty: neither.
func Edited(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\ufeff")):
		return "it begins with a byte order mark, as some editors write it"
	case bytes.Contains(data, []byte("\r\n")):
		return "its lines end as on Windows (CRLF), as some editors write them"
	}
	return ""
}
