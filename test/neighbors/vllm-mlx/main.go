// Command vllm-mlx is a double of vllm-mlx: a real program on a real port, for tests only.
package main

import "slipway/test/neighbors/double"

func main() { double.Main(double.VLLMMLX) }
