package coordinator

import (
	"context"
	"strconv"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/task"
)

// Settings of a group that the coordinator knows (OpenSearch 3.7).
const (
	groupTimeout     = "search.default_search_timeout"
	groupCancelAfter = "search.cancel_after_time_interval"
	groupConcurrency = "search.max_concurrent_shard_requests"
	groupReduce      = "search.batched_reduce_size"
	groupOverride    = "override_request_values"
)

// DefaultBatchedReduce is how many answers of shards are reduced at once unless
// the request or its group says otherwise, as in OpenSearch.
const DefaultBatchedReduce = 512

// DefaultConcurrentShards is how many shards of a search one data node works on
// at once unless the request or its group says otherwise. Source: OpenSearch's
// SearchRequest; the next page of a scroll has no such bound there, nor here.
const DefaultConcurrentShards = 5

// limits are what a search is held to: its request's, else its group's, else
// the cluster's; a group that overrides requests comes first.
type limits struct {
	timeout     time.Duration // 0: none
	cancelAfter time.Duration // 0: never
	concurrency int
	reduce      int
}

func limitsOf(r *Request, g *cluster.Group, state *cluster.State) limits {
	var own map[string]string
	if g != nil {
		own = g.Settings
	}
	override := own[groupOverride] == "true"
	length := func(asked time.Duration, key string, otherwise time.Duration) time.Duration {
		if text, given := own[key]; given && (asked == 0 || override) {
			if d, err := cluster.ParseTime(text); err == nil {
				return max(0, d)
			}
		}
		if asked != 0 {
			return max(0, asked)
		}
		return max(0, otherwise)
	}
	number := func(asked int, key string, otherwise int) int {
		if text, given := own[key]; given && (asked == 0 || override) {
			if n, err := strconv.Atoi(text); err == nil && n > 0 {
				return n
			}
		}
		if asked != 0 {
			return asked
		}
		return otherwise
	}
	return limits{
		timeout:     length(r.Timeout, groupTimeout, state.SearchTimeout()),
		cancelAfter: length(r.CancelAfter, groupCancelAfter, state.CancelAfter()),
		concurrency: number(r.MaxConcurrentShards, groupConcurrency, DefaultConcurrentShards),
		reduce:      number(r.BatchedReduce, groupReduce, DefaultBatchedReduce),
	}
}

// cancelling returns a context that ends once the search has taken too long.
// OpenSearch arms this timer before the admission, as it is here.
func (s *search) cancelling(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.limits.cancelAfter == 0 {
		return ctx, func() {}
	}
	why := task.NewCancelled("Cancellation timeout of [" + cluster.FormatTime(s.limits.cancelAfter) + "] is expired")
	return context.WithDeadlineCause(ctx, s.started.Add(s.limits.cancelAfter), why)
}

// reducePhases returns how often the answers of so many shards are reduced, at
// most batch at once: a partial result takes the place of one of them.
func reducePhases(shards, batch int) int {
	if shards <= batch {
		return 1
	}
	return 1 + (shards-2)/(batch-1)
}
