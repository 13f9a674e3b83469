// Command launchctl is a double of macOS's launchctl and launchd: a real program on a real port, for tests only.
package main

import "slipway/test/neighbors/double"

func main() { double.Launchctl() }
