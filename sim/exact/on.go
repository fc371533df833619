//go:build exact

package exact

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	_ "unsafe" // for go:linkname
)

// Enabled tells whether the program was built with the overlay and the tag.
const Enabled = true

// begin and end are in the overlay. A build with the tag and without the
// overlay ends with the linker's word that they are not defined.
//
//go:linkname begin
func begin(seed, every uint64, shuffle bool)

//go:linkname end
func end()

// collectEvery is how often a collection is forced: at every so many moves of
// the bubble's clock. A cluster allocates some kilobytes a move, so this keeps
// the garbage within some hundred megabytes; collecting at a size instead would
// not repeat.
const collectEvery = 16384

// before is what Begin found; running guards it.
var (
	running atomic.Bool
	before  struct {
		processors, percent int
		limit               int64
	}
)

func switchOn(seed uint64, o Options) {
	if !running.CompareAndSwap(false, true) {
		panic("exact: a run begins while another has not ended")
	}
	before.processors = runtime.GOMAXPROCS(1)
	before.percent = debug.SetGCPercent(-1)
	before.limit = debug.SetMemoryLimit(math.MaxInt64)
	// Two collections empty all pools.
	runtime.GC()
	runtime.GC()
	begin(seed, collectEvery, o.Shuffle)
}

func switchOff() {
	end()
	debug.SetMemoryLimit(before.limit)
	debug.SetGCPercent(before.percent)
	runtime.GOMAXPROCS(before.processors)
	running.Store(false)
}
