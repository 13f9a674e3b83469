// Command dflash-serve is a double of dflash-serve: a real program on a real port, for tests only.
package main

import "slipway/test/neighbors/double"

func main() { double.Main(double.DFlash) }
