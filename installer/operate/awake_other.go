//go:build !darwin

package operate

// stayAwake is for Macs, which sleep while programs work.
func stayAwake() {}
