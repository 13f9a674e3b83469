// Command lms is a double of LM Studio's command lms: a real program on a real port, for tests only.
package main

import "slipway/test/neighbors/double"

func main() { double.LMS() }
