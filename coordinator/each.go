package coordinator

import (
	"sync"
	"sync/atomic"

	"github.com/wlmsim/wlmsim/cluster"
)

// searchesPerNode is the least of ten and the size of a data node's pool, which
// is more.
const searchesPerNode = 10

// ConcurrentSearches is how many searches of a multi-search run at once unless
// it says so itself: OpenSearch's default for the simulated pool, ten for each
// data node of the cluster, and one at the least.
func ConcurrentSearches(s *cluster.State) int {
	data := 0
	for _, n := range s.Nodes() {
		if n.Has(cluster.Data) {
			data++
		}
	}
	return max(1, data*searchesPerNode)
}

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
