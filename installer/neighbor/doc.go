// Package neighbor deals with other people's model servers on the same machine: it recognises them, proves that they
// are idle, stops them in the gentlest way that each kind has, and puts every one of them back.
//
//	find -> identify -> prove idle -> record -> re-check -> stop -> (slipway works) -> restore -> forget the record
//
// A kind is a value of facts (one file a kind); this package's machinery is common to all. Three rules stand above
// everything: what is not certain is busy; nothing is signalled that was not recorded; no SIGKILL, ever.
package neighbor
