// Command rapid-mlx is a double of Rapid-MLX: a real program on a real port, for tests only.
package main

import "slipway/test/neighbors/double"

func main() { double.Main(double.RapidMLX) }
