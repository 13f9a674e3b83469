// Command llmster is a double of LM Studio's headless server: a real program on a real port, for tests only.
package main

import "slipway/test/neighbors/double"

func main() { double.Main(double.LMStudio) }
