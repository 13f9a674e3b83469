package main

import "slipway/metal/gpu"

// accelerator is the GPU that serve, probe and selftest use. A build with the tag fakemetal puts a fake in its place.
var accelerator = gpu.System()
