// Package neighbor deals with other people's model servers on the same machine: it recognises them, proves that they
// are idle, stops them in the gentlest way that each kind has, and starts every one of them again.
//
//	find -> identify -> prove idle -> record -> re-check -> stop -> (slipway runs) -> restore -> delete the record
//
// A kind is a value of facts (one file a kind); the code is common to all. Three rules: what
// is not certain is busy; nothing is signalled before its record is on disk; no SIGKILL, ever.
package neighbor
