// Command systemctl is a double of systemctl: a real program on a real port, for tests only.
package main

import "slipway/test/neighbors/double"

func main() { double.Systemctl() }
