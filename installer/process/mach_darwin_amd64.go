package process

import "time"

// machTicks turns ticks of mach_absolute_time into time: nanoseconds on Intel Macs.
func machTicks(ticks uint64) time.Duration { return time.Duration(ticks) }
