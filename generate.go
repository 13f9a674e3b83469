// Package slipway is the root of the repository. It holds no code: the programs are in cmd/slipway and
// cmd/slipway-server, and CONTRIBUTING.md shows the folders. The rules of who may import whom are
// tests in this folder.
package slipway

//go:generate go run ./scripts/notices -write
//go:generate go run ./scripts/sums -write
