//go:build !darwin

package main

// stayAwake is for Macs, which sleep while programs work.
func stayAwake() {}
