package apply

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

	"slipway/atomicfile"
	"slipway/installer/plan"
)

// originKeyBytes are 256 random bits, in hex digits and with a newline at the end.
const originKeyBytes = 2*32 + 1

// originKeySHA256 names the key that pages of allowed origins send; empty where it is missing, damaged, or readable by
// others.
func originKeySHA256(home *Home) string {
	info, err := home.Root.Lstat(plan.OriginKeyPath)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o600 || info.Size() != originKeyBytes {
		return ""
	}
	key, err := home.Root.ReadFile(plan.OriginKeyPath)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}

// makeOriginKey makes the key where a usable one is not there.
func makeOriginKey(home *Home) error {
	if originKeySHA256(home) != "" {
		return nil
	}
	var random [32]byte
	rand.Read(random[:])
	return atomicfile.Replace(home.Root, plan.OriginKeyPath, []byte(hex.EncodeToString(random[:])+"\n"), 0o600)
}
