package process

import "time"

// machTicks turns ticks of mach_absolute_time into time: 24 MHz on every Apple silicon Mac, 125/3 ns a tick.
func machTicks(ticks uint64) time.Duration { return time.Duration(ticks * 125 / 3) }
