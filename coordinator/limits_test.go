package coordinator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/coordinator"
)

// Each data node is told how many shards of a search it may serve at once: five
// unless the request says otherwise, in a point in time and at the beginning of
// a scroll, too, and any number for the next page of a scroll.
func TestEveryRequestToADataNodeHasItsLimit(t *testing.T) {
	var mu sync.Mutex
	seen := map[wire.Phase][]int{}
	w := newWorld(t, options{peers: func(next coordinator.Peers) coordinator.Peers {
		return peers(func(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
			mu.Lock()
			seen[r.Phase] = append(seen[r.Phase], r.Concurrency)
			mu.Unlock()
			return next.Search(ctx, node, r)
		})
	}})
	told := func(phase wire.Phase) []int {
		mu.Lock()
		defer mu.Unlock()
		list := seen[phase]
		clear(seen)
		return list
	}
	ctx, plain := t.Context(), coordinator.Request{ID: "one", Index: "logs", Size: 1}
	completed(t, w.search(ctx, plain))
	require.Equal(t, []int{5, 5, 5}, told(wire.Query))
	some := plain
	some.MaxConcurrentShards = 2
	completed(t, w.search(ctx, some))
	require.Equal(t, []int{2, 2, 2}, told(wire.Query))

	some.MaxConcurrentShards, some.Scroll = 0, time.Minute
	first := completed(t, w.search(ctx, some))
	require.Equal(t, []int{5, 5, 5}, told(wire.OpenScroll))
	completed(t, w.search(ctx, coordinator.Request{ID: "page", ScrollID: first.ScrollID, Scroll: time.Minute}))
	require.Equal(t, []int{0, 0, 0}, told(wire.Query))

	point, err := w.c.OpenPoint(ctx, coordinator.PointRequest{Index: "logs", KeepAlive: time.Minute})
	require.NoError(t, err)
	told(wire.OpenPoint)
	completed(t, w.search(ctx, coordinator.Request{ID: "two", PointID: point.ID}))
	require.Equal(t, []int{5, 5, 5}, told(wire.Query))
}

// slots returns when the last of some tasks is over if at most so many run at
// once, each beginning in its turn as soon as one ends.
func slots(tasks []time.Duration, most int) time.Duration {
	free := make([]time.Duration, most)
	for _, task := range tasks {
		slices.Sort(free)
		free[0] += task
	}
	return slices.Max(free)
}

// A search takes as long as the slowest of its data nodes, each of which works
// on so many of its shards at a time.
func TestTheShardsOfASearchAgreeWithSlots(t *testing.T) {
	const shards = 24
	service := cluster.ServiceTime{Distribution: cluster.LogNormal, P50: 10 * time.Millisecond, P99: 80 * time.Millisecond}
	took := func(nodes, most int, chosen ...int) (d time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			w := build(t, options{dataNodes: nodes, shards: shards, service: service, quiet: true})
			defer w.close()
			r := coordinator.Request{
				ID: "one", Index: "logs", ServiceTime: -1, MaxConcurrentShards: most,
				Preference: "_shards:" + strings.ReplaceAll(strings.Trim(fmt.Sprint(chosen), "[]"), " ", ","),
			}
			d = completed(t, w.search(t.Context(), r)).Took
		})
		return d
	}
	alone := map[[2]int]time.Duration{} // by number of nodes and shard
	rapid.Check(t, func(rt *rapid.T) {
		nodes := rapid.IntRange(1, 3).Draw(rt, "nodes")
		most := rapid.IntRange(0, 8).Draw(rt, "most")
		chosen := rapid.SliceOfNDistinct(rapid.IntRange(0, shards-1), 1, shards, rapid.ID).Draw(rt, "shards")
		slices.Sort(chosen)
		held := make([][]time.Duration, nodes)
		for _, shard := range chosen {
			place := [2]int{nodes, shard}
			if _, known := alone[place]; !known {
				alone[place] = took(nodes, 0, shard)
			}
			held[shard%nodes] = append(held[shard%nodes], alone[place])
		}
		var want time.Duration
		for _, tasks := range held {
			limit := most
			if most == 0 {
				limit = 5
			}
			want = max(want, slots(tasks, limit))
		}
		if got := took(nodes, most, chosen...); got != want {
			rt.Fatalf("the search took %v, want %v", got, want)
		}
	})
}
