package node_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/netsim"
)

// Case C34, what it costs: a hundred clients that retry at once for ten seconds
// leave no goroutine and no memory behind, neither during the storm nor after,
// and a single client is admitted at once.
func TestARetryStormGrowsNothing(t *testing.T) {
	const clients, length, roundTrip = 100, 10 * time.Second, 10 * time.Millisecond
	near := netsim.Faults{Latency: netsim.Range{Min: 100 * time.Microsecond, Max: 200 * time.Microsecond}}
	inLabOn(t, netsim.Config{Seed: 1, Link: near}, "m1 m2 m3", nil, func(l *lab) {
		l.index(3)
		g := l.group("m1", "g", cluster.ByGroup, 2)
		var refused, answered atomic.Uint64
		end := time.Now().Add(length)
		var storm sync.WaitGroup
		for i := range clients {
			storm.Go(func() {
				time.Sleep(time.Duration(i) * roundTrip / clients) // not all at one instant
				for time.Now().Before(end) {
					a := l.search(l.t.Context(), "m1", "u", g, 50*time.Millisecond)
					switch {
					case a.err == nil:
						answered.Add(1)
					case throttled(a.err):
						refused.Add(1)
					}
					time.Sleep(roundTrip)
				}
			})
		}
		at := func(d time.Duration) (goroutines int, bytes uint64) {
			time.Sleep(time.Until(end.Add(d - length)))
			return runtime.NumGoroutine(), heap()
		}
		earlyRoutines, earlyHeap := at(length / 5)
		lateRoutines, lateHeap := at(length - time.Second)
		storm.Wait()
		require.LessOrEqual(l.t, lateRoutines, earlyRoutines+20)
		require.LessOrEqual(l.t, lateHeap, earlyHeap+4<<20)
		time.Sleep(time.Second)
		require.Less(l.t, runtime.NumGoroutine(), lateRoutines-clients/2, "the clients are gone, and nothing of theirs is left")

		require.Greater(l.t, answered.Load(), uint64(320), "80%% of 40 a second")
		require.Greater(l.t, refused.Load(), uint64(50_000))
		require.Equal(l.t, refused.Load(), l.throttledCount("m1", g))
		began := time.Now()
		require.NoError(l.t, l.search(l.t.Context(), "m1", "u", g, 50*time.Millisecond).err)
		require.Less(l.t, time.Since(began), 100*time.Millisecond)
		l.requireNoPermit()
	})
}
