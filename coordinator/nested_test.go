package coordinator_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/coordinator"
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
// ends first; a panic in one is a failure of the outer one and takes no permit
// along.
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
