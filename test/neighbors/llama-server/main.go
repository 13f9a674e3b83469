// Command llama-server is a double of llama.cpp's server: a real program on a real port, for tests only.
package main

import "slipway/test/neighbors/double"

func main() { double.Main(double.LlamaServer) }
