package coordinator

import (
	"sync"
	"sync/atomic"
)

// RunEach calls f for each number from 0 to n-1, in that order and at most most
// of them at once, and returns when all have returned. The next one is called by
// the goroutine whose call has returned, so what a call gave back is there for
// the next. If one is to run at a time, all run on the caller's goroutine.
//
// OpenSearch starts the searches of a multi-search in this way.
func RunEach(n, most int, f func(i int)) {
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
			f(int(i))
		}
	}
	var others sync.WaitGroup
	defer others.Wait() // also after a panic of f on this goroutine
	for range min(n, most) - 1 {
		others.Go(work)
	}
	work()
}
