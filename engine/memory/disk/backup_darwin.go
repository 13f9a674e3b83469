package disk

import (
	"syscall"
	"unsafe"
)

// excludeFromBackups tells Time Machine to leave the folder out: the extended attribute that tmutil sets, a binary
// property list with the one string "com.apple.backupd". Where it fails the marker file still tells other programs.
func excludeFromBackups(dir string) {
	path, err := syscall.BytePtrFromString(dir)
	if err != nil {
		return
	}
	name, err := syscall.BytePtrFromString("com.apple.metadata:com_apple_backup_excludeItem")
	if err != nil {
		return
	}
	// bplist00, one ASCII string of 17 characters, offset table with the one offset 8, trailer.
	value := append([]byte("bplist00\x5f\x10\x11com.apple.backupd\x08"), make([]byte, 32)...)
	trailer := value[len(value)-32:]
	trailer[6], trailer[7], trailer[15], trailer[31] = 1, 1, 1, byte(len(value)-32-1)
	syscall.Syscall6(syscall.SYS_SETXATTR, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(name)),
		uintptr(unsafe.Pointer(&value[0])), uintptr(len(value)), 0, 0)
}
