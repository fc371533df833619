package rest_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/coordinator/rest"
	"github.com/wlmsim/wlmsim/wlm"
)

// searcher makes a function a rest.Searcher.
type searcher func(context.Context, coordinator.Request) (*coordinator.Response, error)

func (f searcher) Search(ctx context.Context, r coordinator.Request) (*coordinator.Response, error) {
	return f(ctx, r)
}

const msearch = "/_msearch?max_concurrent_searches=1"

func TestAMultiSearchAnswersEachSearchInItsPlace(t *testing.T) {
	w := newWorld(t, func(c *rest.Config) {
		c.Searcher = searcher(func(_ context.Context, r coordinator.Request) (*coordinator.Response, error) {
			switch r.Index {
			case "full":
				return nil, &wlm.Rejection{Group: "id-x", Limit: 10, Counted: true}
			case "none":
				return nil, cluster.Errorf(cluster.IndexNotFound, "no such index [none]")
			case "broken":
				return nil, &coordinator.SearchError{Phase: "query", Reason: coordinator.AllShardsFailed, Status: 503, Failures: []coordinator.ShardFailure{
					{Index: "broken", Node: "d1", Error: cluster.Errorf(cluster.IllegalState, "why")}}}
			}
			return &coordinator.Response{Relation: "eq", Total: int64(r.Size), Shards: coordinator.ShardSummary{Total: 1, Successful: 1}}, nil
		})
	})
	body := "{}\n{\"size\":1}\n" + "{\"index\":\"full\"}\n{}\n" + "{\"index\":[\"none\"]}\n{}\n" + "\n{\"size\":2}\n" + "{\"index\":\"broken\"}\n{}\n\n"
	for _, target := range []string{msearch, "/_msearch", "/some/_msearch?max_concurrent_searches=3"} {
		r := w.do(http.MethodPost, target, body, "Content-Type", "application/x-ndjson")
		require.Equal(t, http.StatusOK, r.Code, r.Body)
		answer := r.Body.String()
		require.Regexp(t, `^\{"took":\d+,"responses":\[`, answer)
		rejected := `{"root_cause":[{"type":"rejected_execution_exception","reason":"Node-level workload group throttle limit reached: 10 concurrent in-flight requests"}],"type":"rejected_execution_exception","reason":"Node-level workload group throttle limit reached: 10 concurrent in-flight requests"}`
		require.Equal(t, `{"took":0,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"total":{"value":1,"relation":"eq"},"max_score":null,"hits":[]},"status":200},`+
			`{"error":`+rejected+`,"status":429},`+
			`{"error":{"root_cause":[{"type":"index_not_found_exception","reason":"no such index [none]","index":"none","resource.id":"none","resource.type":"index_or_alias","index_uuid":"_na_"}],"type":"index_not_found_exception","reason":"no such index [none]","index":"none","resource.id":"none","resource.type":"index_or_alias","index_uuid":"_na_"},"status":404},`+
			`{"took":0,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"total":{"value":2,"relation":"eq"},"max_score":null,"hits":[]},"status":200},`+
			`{"error":{"root_cause":[{"type":"illegal_state_exception","reason":"why"}],"type":"search_phase_execution_exception","reason":"all shards failed","phase":"query","grouped":true,"failed_shards":[{"shard":0,"index":"broken","node":"d1","reason":{"type":"illegal_state_exception","reason":"why"}}]},"status":503}`+
			`]}`, answer[strings.Index(answer, "[")+1:])
	}
}

func TestWhatAMultiSearchPassesOn(t *testing.T) {
	w := newWorld(t)
	w.cluster.apply(t, &cluster.CreateIndex{Name: "logs", Shards: 1})
	r := w.do(http.MethodGet, "/logs/_msearch?max_concurrent_searches=1&rest_total_hits_as_int", "{}\n{\"from\":3}\n"+
		`{"index":"lo*","preference":"_shards:1","routing":"a","search_type":"query_then_fetch","allow_partial_search_results":false,"cancel_after_time_interval":"2s"}`+"\n{}\n",
		"X-Opaque-Id", "an id", rest.HeaderGroup, "a group", rest.HeaderUser, "alice")
	require.Equal(t, http.StatusOK, r.Code, r.Body)
	require.Contains(t, r.Body.String(), `"hits":{"total":10000,`)
	require.Len(t, w.searcher.principals, 2)
	all, no := []byte(`{"match_all":{}}`), false
	require.Equal(t, []coordinator.Request{
		{ID: "an id", OpaqueID: "an id", GroupHeader: "a group", Index: "logs", Query: all, From: 3, Size: 10, ServiceTime: -1},
		{ID: "an id", OpaqueID: "an id", GroupHeader: "a group", Index: "lo*", Query: all, Size: 10, ServiceTime: -1,
			Preference: "_shards:1", Routing: "a", AllowPartial: &no, CancelAfter: 2e9},
	}, w.searcher.requests)
}

// ignore_unavailable, allow_no_indices and expand_wildcards are read wherever
// indices are searched, and a line of a multi-search goes before its request.
func TestHowNamesOfIndicesAreReadIsPassedOn(t *testing.T) {
	w := newWorld(t)
	w.cluster.apply(t, &cluster.CreateIndex{Name: "logs", Shards: 1})
	all := cluster.IndexOptions{IgnoreUnavailable: true, RefuseNone: true, Wildcards: cluster.ExpandNone}
	const query = "?ignore_unavailable&allow_no_indices=false&expand_wildcards=open,none"
	for _, target := range []string{"/logs/_search" + query, "/_search" + query, "/logs/_count" + query} {
		require.Equal(t, http.StatusOK, w.do(http.MethodGet, target, "").Code)
	}
	lines := "{}\n{}\n" + `{"ignore_unavailable":false,"allow_no_indices":"true","expand_wildcards":["open","closed"]}` + "\n{}\n" +
		`{"ignoreUnavailable":"false","allowNoIndices":true,"expandWildcards":"all"}` + "\n{}\n"
	require.Equal(t, http.StatusOK, w.do(http.MethodPost, "/_msearch"+query+"&max_concurrent_searches=1", lines).Code)
	var got []cluster.IndexOptions
	for _, r := range w.searcher.requests {
		got = append(got, r.Options)
	}
	require.Equal(t, []cluster.IndexOptions{all, all, all, all, {}, {}}, got)
	require.Equal(t, http.StatusOK, w.do(http.MethodPost, "/logs/_search/point_in_time"+query+"&keep_alive=1m", "").Code)
	require.Equal(t, all, w.contexts.opened[0].Options)

	for _, bad := range []string{"expand_wildcards=opne", "expand_wildcards=", "ignore_unavailable=1", "allow_no_indices=no"} {
		require.Equal(t, http.StatusBadRequest, w.do(http.MethodGet, "/_search?"+bad, "").Code, bad)
		require.Equal(t, http.StatusBadRequest, w.do(http.MethodPost, "/_msearch?"+bad, "{}\n{}\n").Code, bad)
		require.Equal(t, http.StatusBadRequest, w.do(http.MethodPost, "/logs/_search/point_in_time?keep_alive=1m&"+bad, "").Code, bad)
	}
	for _, bad := range []string{`{"expand_wildcards":"opne"}`, `{"ignore_unavailable":1}`, `{"allow_no_indices":"no"}`} {
		require.Equal(t, http.StatusBadRequest, w.do(http.MethodPost, "/_msearch", bad+"\n{}\n").Code, bad)
	}
}

// The default lets ten searches run for each data node.
func TestAMultiSearchKeepsItsConcurrency(t *testing.T) {
	for target, want := range map[string]int64{"/_msearch": 20, "/_msearch?max_concurrent_searches=4": 4, msearch: 1} {
		var running, most atomic.Int64
		gate := make(chan struct{})
		w := newWorld(t, func(c *rest.Config) {
			c.Searcher = searcher(func(context.Context, coordinator.Request) (*coordinator.Response, error) {
				n := running.Add(1)
				for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
				}
				if n == want {
					select {
					case <-gate:
					default:
						close(gate) // as many as may run do
					}
				}
				<-gate
				running.Add(-1)
				return &coordinator.Response{}, nil
			})
		})
		require.Equal(t, http.StatusOK, w.doConcurrently(http.MethodPost, target, strings.Repeat("{}\n{}\n", 50)).Code)
		require.Equal(t, want, most.Load(), target)
	}
}

func TestAMultiSearchIsReadStrictly(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ target, body, reason string }{
		{"/_msearch", "", "request body is required"},
		{"/_msearch", "{}\n{}", "The msearch request must be terminated by a newline [\n]"},
		{"/_msearch", "\n\n", "Validation Failed: 1: no requests added;"},
		{"/_msearch", "{}\n", "line 1 of the msearch request is a header without a body"},
		{"/_msearch", "{}\n{}\n{}\n", "line 3 of the msearch request is a header without a body"},
		{"/_msearch", "{}\n{}\n{\"index\":\"a\",\"indx\":1}\n{}\n", "search at line 3: key [indx] is not supported in the metadata section"},
		{"/_msearch", "{\"index\":1}\n{}\n", "search at line 1: index must be a string but was '1'"},
		{"/_msearch", "{\"allow_partial_search_results\":\"no\"}\n{}\n", "search at line 1: allow_partial_search_results must be true or false but was '\"no\"'"},
		{"/_msearch", "{\"preference\":\"_x\"}\n{}\n", "search at line 1: no Preference for [_x]"},
		{"/_msearch", "{\"search_type\":\"scan\"}\n{}\n", "search at line 1: No search type for [scan]"},
		{"/_msearch", "{}\n\n{}\n{}\n", "search at line 1: request body is required"},
		{"/_msearch", "{}\n{\"aggs\":{}}\n", "search at line 1: Unknown key for a START_OBJECT in [aggs]: the simulated shards know query, from, size, timeout, track_total_hits, pit, sort, _source and ext"},
		{"/_msearch", "{}\n{\"size\":10001}\n", "search at line 1: Result window is too large, from + size must be less than or equal to: [10000] but was [10001]."},
		{"/_msearch", "{}\n{\n}\n{}\n", "search at line 1: request body is not valid JSON in []: it ends too early"},
		{"/_msearch?max_concurrent_searches=0", "{}\n{}\n", "maxConcurrentSearchRequests must be positive"},
		{"/_msearch?max_concurrent_searches=x", "{}\n{}\n", "Failed to parse int parameter [max_concurrent_searches] with value [x]"},
		{"/_msearch", strings.Repeat("{}\n{}\n", rest.MaxSubSearches+1), "a multi search has at most 10000 searches, this one has more"},
	} {
		r := w.do(http.MethodPost, c.target, c.body)
		require.Equal(t, http.StatusBadRequest, r.Code, "%.100q", c.body)
		require.Equal(t, c.reason, reason(t, r), "%.100q", c.body)
	}
	require.Empty(t, w.searcher.requests, "nothing runs of what is not sound as a whole")
}

func TestLookupsAreBounded(t *testing.T) {
	w := newWorld(t)
	lookup := func(inner string) string { return `{"terms":{"a":{"index":"u","path":"p","query":` + inner + `}}}` }
	query := `{"match_all":{}}`
	for range rest.MaxLookups {
		query = lookup(query)
	}
	require.Equal(t, http.StatusOK, w.do(http.MethodPost, "/_search", `{"query":`+query+`}`).Code)
	r := w.do(http.MethodPost, "/_search", `{"query":{"bool":{"should":[`+query+`,`+lookup(`{"match_all":{}}`)+`]}}}`)
	require.Equal(t, http.StatusBadRequest, r.Code)
	require.Equal(t, "a query may look terms up by at most 16 other queries", reason(t, r))
}

func FuzzMultiSearchBodies(f *testing.F) {
	f.Add("{}\n{}\n")
	f.Add("{\"index\":[\"a\",\"b\"]}\n{\"query\":{\"terms\":{\"a\":{\"index\":\"u\",\"path\":\"p\",\"query\":{\"match_all\":{}}}}}}\n")
	f.Add("\n{\"size\":1}\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		w := newWorld(t)
		r := w.do(http.MethodPost, msearch, body)
		require.Contains(t, []int{http.StatusOK, http.StatusBadRequest}, r.Code, "%s", r.Body)
		if r.Code == http.StatusBadRequest {
			require.Empty(t, w.searcher.requests)
		}
	})
}
