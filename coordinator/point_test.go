package coordinator_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/coordinator"
)

// A point in time that lacks shards has the text of those that it has: its
// searches are whole, it is listed by that text, and it ends everywhere.
func TestAPointInTimeHasTheShardsThatAnswered(t *testing.T) {
	var opened atomic.Int64 // requests that open, by which nodes go down
	w := newWorld(t, options{peers: func(next coordinator.Peers) coordinator.Peers {
		return peers(func(ctx context.Context, node string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
			if r.Phase == wire.OpenPoint {
				opened.Add(1)
			}
			if node == "d2" || node == "d3" && r.Phase == wire.OpenPoint && opened.Load() > 3 {
				return nil, errors.New("the node is gone")
			}
			return next.Search(ctx, node, r)
		})
	}})
	ctx := t.Context()
	_, err := w.c.OpenPoint(ctx, coordinator.PointRequest{Index: "logs", KeepAlive: time.Minute})
	var refused *coordinator.SearchError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, coordinator.PartialFailure, refused.Reason)
	list, err := w.c.Points(ctx)
	require.NoError(t, err)
	require.Empty(t, list, "what was refused is kept nowhere")

	opened.Store(0) // d2 is gone, and d3 once three nodes were asked
	point, err := w.c.OpenPoint(ctx, coordinator.PointRequest{Index: "logs", KeepAlive: time.Minute, AllowPartial: true})
	require.NoError(t, err)
	require.Equal(t, coordinator.ShardSummary{Total: 6, Successful: 2, Failed: 4, Failures: point.Shards.Failures}, point.Shards)
	var lacking []int
	for _, f := range point.Shards.Failures {
		lacking = append(lacking, f.Shard)
	}
	require.Equal(t, []int{1, 2, 4, 5}, lacking)
	r := completed(t, w.search(ctx, coordinator.Request{ID: "one", PointID: point.ID, Size: 5}))
	require.Equal(t, coordinator.ShardSummary{Total: 2, Successful: 2}, r.Shards)

	list, err = w.c.Points(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, point.ID, list[0].Text)
	freed, err := w.c.FreePoints(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, []coordinator.FreedPoint{{ID: point.ID, Successful: true}}, freed)
	_, err = w.c.Search(ctx, coordinator.Request{ID: "two", PointID: point.ID})
	require.Equal(t, cluster.Kind("search_context_missing_exception"), causeOf(t, err))
}

// causeOf returns the kind of the first failure of a search that failed.
func causeOf(t *testing.T, err error) cluster.Kind {
	var failed *coordinator.SearchError
	require.ErrorAs(t, err, &failed)
	require.NotEmpty(t, failed.Failures)
	return failed.Failures[0].Kind
}
