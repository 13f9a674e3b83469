// Command webapp is a double of some program that is no model server: a real program on a real port, for tests only.
package main

import "slipway/test/neighbors/double"

func main() { double.Main(double.Webapp) }
