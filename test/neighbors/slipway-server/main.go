// Command slipway-server is a double of an older slipway-server: a real program on a real port, for tests only.
package main

import "slipway/test/neighbors/double"

func main() { double.Main(double.Slipway) }
