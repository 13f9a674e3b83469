// Command ds4-server is a double of ds4-server: a real program on a real port, for tests only.
package main

import "slipway/test/neighbors/double"

func main() { double.Main(double.DS4) }
