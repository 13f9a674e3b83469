// Command kapitsa is a double of Kapitsa, of which only the name is known: a real program on a real port, for tests
// only.
package main

import "slipway/test/neighbors/double"

func main() { double.Main(double.Kapitsa) }
