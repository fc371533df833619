package coordinator_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/coordinator"
)

// drawAnswers returns what each shard of two indices answers: few scores, so
// that ties are common, and failures.
func drawAnswers(rt *rapid.T, window int) map[wire.ShardID]wire.ShardAnswer {
	answers := map[wire.ShardID]wire.ShardAnswer{}
	for _, index := range []string{"logs", "more"} {
		for shard := range 4 {
			id := wire.ShardID{Index: index, Shard: shard}
			a := wire.ShardAnswer{Shard: id}
			if rapid.IntRange(0, 5).Draw(rt, "fails") == 0 {
				a.Failure = cluster.Errorf(cluster.TooMany, "full")
			} else {
				for n := range rapid.IntRange(0, window).Draw(rt, "hits") {
					a.Hits = append(a.Hits, wire.Hit{ID: fmt.Sprint(n), Score: float64(rapid.IntRange(0, 3).Draw(rt, "score"))})
				}
				slices.SortFunc(a.Hits, func(x, y wire.Hit) int {
					return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(x.ID, y.ID))
				})
				a.Total = int64(len(a.Hits)) + int64(rapid.IntRange(0, 4000).Draw(rt, "more"))
				if len(a.Hits) > 0 {
					a.MaxScore = a.Hits[0].Score
				}
			}
			answers[id] = a
		}
	}
	return answers
}

// Promise 7.
func TestTheMergeAgreesWithANaiveModel(t *testing.T) {
	var answers map[wire.ShardID]wire.ShardAnswer
	w := newWorld(t, options{shards: 4, quiet: true, peers: func(coordinator.Peers) coordinator.Peers {
		return peers(func(_ context.Context, _ string, r *wire.SearchRequest) (*wire.SearchAnswer, error) {
			a := &wire.SearchAnswer{}
			for _, shard := range r.Shards {
				a.Shards = append(a.Shards, answers[shard])
			}
			return a, nil
		})
	}})
	w.apply(&cluster.CreateIndex{Name: "more", Shards: 4})
	rapid.Check(t, func(rt *rapid.T) {
		r := coordinator.Request{Index: "more,lo*,logs", From: rapid.IntRange(0, 12).Draw(rt, "from"), Size: rapid.IntRange(0, 12).Draw(rt, "size")}
		answers = drawAnswers(rt, r.From+r.Size)
		a := w.search(t.Context(), r)

		type found struct {
			coordinator.Hit
			shard int
		}
		var all []found
		var total int64
		var best float64
		var failures []string
		for id, shard := range answers {
			if shard.Failure != nil {
				failures = append(failures, id.String())
				continue
			}
			total += shard.Total
			best = max(best, shard.MaxScore)
			for _, h := range shard.Hits {
				all = append(all, found{coordinator.Hit{Index: id.Index, ID: h.ID, Score: h.Score}, id.Shard})
			}
		}
		slices.Sort(failures)
		if len(failures) == 8 {
			require.ErrorContains(rt, a.err, coordinator.AllShardsFailed)
			return
		}
		slices.SortFunc(all, func(x, y found) int {
			return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(x.Index, y.Index), cmp.Compare(x.shard, y.shard), cmp.Compare(x.ID, y.ID))
		})
		want := []coordinator.Hit{}
		for i := r.From; i < min(len(all), r.From+r.Size); i++ {
			want = append(want, all[i].Hit)
		}
		require.NoError(rt, a.err)
		require.Equal(rt, want, a.response.Hits)
		require.Equal(rt, total, a.response.Count)
		require.Equal(rt, best, a.response.MaxScore)
		if total > coordinator.MaxTrackedHits {
			require.Equal(rt, []any{int64(coordinator.MaxTrackedHits), "gte"}, []any{a.response.Total, a.response.Relation})
		} else {
			require.Equal(rt, []any{total, "eq"}, []any{a.response.Total, a.response.Relation})
		}
		shards := a.response.Shards
		require.Equal(rt, []int{8, 8 - len(failures), len(failures)}, []int{shards.Total, shards.Successful, shards.Failed})
		var named []string
		for _, f := range shards.Failures {
			named = append(named, wire.ShardID{Index: f.Index, Shard: f.Shard}.String())
		}
		require.Equal(rt, failures, named, "failures are sorted by index and shard")
	})
}

func TestTheSameSearchHasTheSameAnswer(t *testing.T) {
	w, other := newWorld(t, options{}), newWorld(t, options{dataNodes: 2})
	r := in("one", "g")
	first := completed(t, w.search(t.Context(), r))
	again := completed(t, other.search(t.Context(), r))
	require.Equal(t, first.Hits, again.Hits, "wherever the shards live")
	require.Equal(t, first.Count, again.Count)
	require.Len(t, first.Hits, 10)
	r.From, r.Size = 3, 4
	require.Equal(t, first.Hits[3:7], completed(t, w.search(t.Context(), r)).Hits)
}

// Searches in a row share a plan, as long as they ask for the same of the same
// state.
func TestASearchAsksForTheShardsOfItsOwnStateAndIndex(t *testing.T) {
	w := newWorld(t, options{})
	shards := func(index string) int {
		return completed(t, w.search(t.Context(), coordinator.Request{Index: index})).Shards.Total
	}
	require.Equal(t, 6, shards("logs"))
	w.apply(&cluster.CreateIndex{Name: "more", Shards: 4})
	require.Equal(t, []int{4, 6, 10, 10}, []int{shards("more"), shards("logs"), shards("logs,more"), shards("")})
	w.apply(&cluster.DeleteIndex{Name: "logs"}, &cluster.CreateIndex{Name: "logs", Shards: 2})
	require.Equal(t, []int{6, 2, 2}, []int{shards(""), shards("logs"), shards("logs")})
}

func TestAWindowBeyondTheBoundIsABadRequest(t *testing.T) {
	w := newWorld(t, options{})
	r := in("one", "g")
	r.From, r.Size = 9995, 6
	var failure *coordinator.SearchError
	require.ErrorAs(t, w.search(t.Context(), r).err, &failure)
	require.Equal(t, 400, failure.Status)
	require.Contains(t, failure.Error(), "must be less than or equal to: [10000] but was [10001]")
	r.Size = 5
	completed(t, w.search(t.Context(), r))
}

func TestACountHasNoHits(t *testing.T) {
	w := newWorld(t, options{})
	r := in("one", "g")
	whole := completed(t, w.search(t.Context(), r))
	r.Count = true
	count := completed(t, w.search(t.Context(), r))
	require.Nil(t, count.Hits)
	require.Equal(t, whole.Count, count.Count)
	require.Positive(t, count.Count)
}

func TestASearchOfNoIndexIsEmpty(t *testing.T) {
	w := newWorld(t, options{})
	r := in("one", "g")
	r.Index = "none*"
	response := completed(t, w.search(t.Context(), r))
	require.Equal(t, coordinator.ShardSummary{}, response.Shards)
	require.Empty(t, response.Hits)
	require.Zero(t, w.asked.Load())
}

// A node that left the cluster is asked no more than it answers.
func TestShardsOfANodeThatIsGoneAreNamedFailures(t *testing.T) {
	w := newWorld(t, options{})
	w.nodes["d2"].Close()
	delete(w.nodes, "d2")
	response := completed(t, w.search(t.Context(), in("one", "g")))
	require.Equal(t, []string{"d2"}, nodesOf(response.Shards.Failures))
	require.Equal(t, wire.NodeNotConnected, response.Shards.Failures[0].Kind)
	require.Contains(t, response.Shards.Failures[0].Reason, "[d2] no such node")

	w.apply(&cluster.PutSettings{SettingsChange: cluster.SettingsChange{Transient: map[string]*string{cluster.SettingAllowPartialResults: ptr("false")}}})
	require.ErrorContains(t, w.search(t.Context(), in("one", "g")).err, coordinator.PartialFailure)
	yes := in("one", "g")
	yes.AllowPartial = ptr(true)
	completed(t, w.search(t.Context(), yes))
}
