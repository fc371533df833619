package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func (r seedRange) all() []uint64 {
	var seeds []uint64
	for i := range r.count {
		seeds = append(seeds, r.at(i))
	}
	return seeds
}

// The shards of a campaign take every seed once, each every n-th.
func TestShardsTakeEverySeedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.OneOf(rapid.Uint64Range(0, 50), rapid.Uint64Range(1<<64-60, 1<<64-60)).Draw(t, "from")
		count := rapid.Uint64Range(1, 50).Draw(t, "count")
		n := rapid.IntRange(1, 60).Draw(t, "shards")
		text := fmt.Sprintf("%d..%d", from, from+count-1)
		whole, err := parseSeeds(text, "")
		require.NoError(t, err)
		want := map[uint64]int{}
		for i := range count {
			want[from+i] = int(i) % n
		}
		require.Len(t, whole.all(), len(want))
		for i := range n {
			shard, err := parseSeeds(text, fmt.Sprintf("%d/%d", i, n))
			require.NoError(t, err)
			for _, seed := range shard.all() {
				require.Equal(t, i, want[seed], "seed %d", seed)
				delete(want, seed)
			}
		}
		require.Empty(t, want)
	})
}
