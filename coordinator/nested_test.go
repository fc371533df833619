package coordinator_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/wlm"
)

func TestTheNameOfANestedSearchTellsTheOuterOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		outer := rapid.String().Draw(t, "outer")
		i := rapid.IntRange(0, 100).Draw(t, "number")
		name, nested := coordinator.OuterName(coordinator.NestedName(outer, i))
		require.True(t, nested)
		require.Equal(t, outer, name)
	})
	for _, name := range []string{"", "a", "a/", "a/0", "a/01", "a/-1", "a/b", "a/+1"} {
		_, nested := coordinator.OuterName(name)
		require.False(t, nested, name)
	}
}

// The next call comes from the goroutine whose call has returned; no more run
// at once than may.
func TestEachRunsOnceAndInOrder(t *testing.T) {
	for _, most := range []int{1, 2, 7, 100} {
		begun := make(chan int, 50)
		coordinator.RunEach(50, most, func(i int) { begun <- i })
		close(begun)
		seen := map[int]bool{}
		last := -1
		for i := range begun {
			require.False(t, seen[i])
			seen[i] = true
			require.True(t, most > 1 || i == last+1)
			last = i
		}
		require.Len(t, seen, 50)
	}
	coordinator.RunEach(0, 5, func(int) { t.Error("there is nothing to run") })
}

// Of nested searches that fail the first one in order is the failure, whichever
// ends first, and each gives its permit back once.
func TestTheFirstNestedFailureIsTheOuterOnes(t *testing.T) {
	w := newWorld(t, options{})
	w.group("g", "group", 9)
	r := in("outer", "g")
	r.Lookups = []coordinator.Lookup{{Index: "logs", Query: []byte("q")}, {Index: "first"}, {Index: "second"}}
	a := w.search(t.Context(), r)
	require.EqualError(t, a.err, "no such index [first]")
	o := w.outcomes("g")
	require.Equal(t, [2]uint64{1, 3}, [2]uint64{o.Completed, o.Failed})
	w.idle()

	r = in("deep", "g")
	r.Lookups = []coordinator.Lookup{{Index: "logs", Lookups: []coordinator.Lookup{{Index: "logs"}}}}
	completed(t, w.search(t.Context(), r))
	require.Equal(t, 1, w.releases("deep"))
	require.Equal(t, 1, w.releases("deep/1"))
	require.Equal(t, 1, w.releases("deep/1/1"))
	w.idle()
}

// upstreamGroup makes a group of one bucket in the form of profile upstream.
func (w *world) upstreamGroup(name string, mode cluster.ResiliencyMode, limit int64) {
	w.apply(&cluster.CreateGroup{Form: cluster.KeyBy, Group: cluster.Group{
		ID: "id-" + name, Name: name, ResiliencyMode: mode, ResourceLimits: map[string]float64{"cpu": 0.01}, Throttling: &cluster.Throttling{NodeLimit: &limit},
	}})
}

// Under upstream a counted search exempts what it starts, over two levels, while
// an independent one is refused; the search of a monitor group that finds its
// bucket full runs, and is counted once with all that it starts.
func TestWhatACountedSearchStartsIsExempt(t *testing.T) {
	for mode, want := range map[cluster.ResiliencyMode][2]uint64{ // throttled, would throttle
		cluster.Enforced: {1, 0}, cluster.Soft: {1, 0}, cluster.Monitor: {0, 1},
	} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t, options{wlm: profile(t, wlm.ProfileUpstream)})
			w.upstreamGroup("g", mode, 1)
			require.NoError(t, w.holds.Hold(probe.FannedOut, probe.Filter{Search: "first"}))
			first := w.start(t.Context(), in("first", "g"))
			require.True(t, w.holds.Await(t.Context().Done(), probe.FannedOut, 1))

			deep := []coordinator.Lookup{{Index: "logs", Lookups: []coordinator.Lookup{{Index: "logs"}}}}
			other := in("other", "g")
			other.Lookups = deep
			a := w.search(t.Context(), other)
			if mode == cluster.Monitor {
				require.False(t, completed(t, a).Permit)
			} else {
				throttled(t, a)
			}
			require.Equal(t, 1, w.held("g"))
			require.Equal(t, want, [2]uint64{w.stats("id-g").Throttled, *w.stats("id-g").WouldThrottle})

			w.holds.Release(probe.FannedOut)
			completed(t, <-first)
			alone := in("alone", "g")
			alone.Lookups = deep
			require.True(t, completed(t, w.search(t.Context(), alone)).Permit)
			require.Equal(t, want, [2]uint64{w.stats("id-g").Throttled, *w.stats("id-g").WouldThrottle})
			w.idle()
		})
	}
}
