// Package plan decides what set-up will do, as values. Make turns decisions into ordered actions and a digest; Judge
// holds a plan against a look at the machine and says what is done, what is pending and what is in the way. Nothing
// here reads a clock, a disk or a network: the same values give the same plan on every machine and every day.
//
// The digest is what a person consents to. It covers decisions and identities (revisions, hashes, profile numbers,
// ports, the home) and never observations (free bytes, what is installed already, the time), so that a plan stays good
// through a broken download and a reboot. Sentences and titles are not covered: a plan file's text is compared whole.
package plan
