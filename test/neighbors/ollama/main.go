// Command ollama is a double of Ollama: a real program on a real port, for tests only.
package main

import "slipway/test/neighbors/double"

func main() { double.Main(double.Ollama) }
