// Command mlx_lm.server is a double of mlx_lm.server: a real program on a real port, for tests only.
package main

import "slipway/test/neighbors/double"

func main() { double.Main(double.MLXLM) }
