package rest_test

import (
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/coordinator/rest"
)

func fill(pattern string) string {
	return strings.NewReplacer("{index}", "logs", "{name}", "g", "{id}", "r", "{node}", "m1", "{group}", "g", "{step}", "wlm.acquired").Replace(pattern)
}

// Promise 4: every route with every method that it does not have.
func TestEveryRouteRefusesEveryOtherMethod(t *testing.T) {
	w := newWorld(t)
	for _, route := range w.handler.Routes() {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, http.MethodTrace, "LOCK", "get"} {
			if slices.Contains(route.Methods, method) {
				continue
			}
			for _, path := range []string{fill(route.Pattern), fill(route.Pattern) + "/", fill(route.Pattern) + "?pretty"} {
				r := w.do(method, path, `{}`)
				require.Equal(t, http.StatusMethodNotAllowed, r.Code, "%s %s", method, path)
				require.Equal(t, strings.Join(route.Methods, ", "), r.Header().Get("Allow"))
			}
		}
	}
	require.Zero(t, w.cluster.Proposed())
	require.Empty(t, w.searcher.requests)
}

func TestEveryRouteRefusesUnknownParameters(t *testing.T) {
	w := newWorld(t)
	for _, route := range w.handler.Routes() {
		for _, method := range route.Methods {
			r := w.do(method, fill(route.Pattern)+"?no_such=1", `{}`)
			require.Equal(t, http.StatusBadRequest, r.Code, "%s %s", method, route.Pattern)
			if method != http.MethodHead {
				require.Equal(t, "request ["+fill(route.Pattern)+"] contains unrecognized parameter: [no_such]", reason(t, r))
			}
		}
	}
	require.Zero(t, w.cluster.Proposed())
	require.Empty(t, w.searcher.requests)
}

func TestPathsThatAreNoRoute(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/_x", "/_wlm", "/_wlm/", "/_wlm/m1", "/_wlm/m1/nothing", "/_wlm/stats/a/b", "/_rules", "/_search/x", "/a/b", "/a/_search/b", "/_cat", "/_wlmsim", "/_x/_search", "/a/_wlm", "//x//y//"} {
		require.Equal(t, http.StatusNotFound, w.do(http.MethodGet, path, "").Code, path)
	}
	require.Equal(t, http.StatusOK, w.do(http.MethodGet, "//_wlm//stats/", "").Code, "empty segments change nothing")
}

func TestHoldsNeedTheirFlag(t *testing.T) {
	w := newWorld(t, func(c *rest.Config) { c.AllowHolds = false })
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		r := w.do(method, "/_wlmsim/holds/wlm.acquired", "")
		require.Equal(t, http.StatusForbidden, r.Code)
		require.Contains(t, reason(t, r), "--allow-holds")
	}
	require.Equal(t, http.StatusForbidden, w.do(http.MethodGet, "/_wlmsim/holds", "").Code)
}

// What a search asks for arrives at the coordinator, and equal queries arrive
// as equal bytes.
func TestSearchesArriveAsTheyWereAsked(t *testing.T) {
	no := false
	all := []byte(`{"match_all":{}}`)
	for _, c := range []struct {
		name, method, target, body string
		want                       coordinator.Request
	}{
		{"nothing", http.MethodGet, "/_search", "", coordinator.Request{Query: all, Size: 10, ServiceTime: -1}},
		{"empty object", http.MethodPost, "/logs,l*/_search", "{}", coordinator.Request{Index: "logs,l*", Query: all, Size: 10, ServiceTime: -1}},
		{"canonical query", http.MethodPost, "/_search", "{ \"query\" : { \"bool\" : { \"b\" : 1.50 , \"a\" : [ 1e2, \"\\u0041\" ] } } }", coordinator.Request{Query: []byte(`{"bool":{"a":[100,"A"],"b":1.5}}`), Size: 10, ServiceTime: -1}},
		{"match_all", http.MethodPost, "/_search", `{"query": {"match_all": {} }}`, coordinator.Request{Query: all, Size: 10, ServiceTime: -1}},
		{"body", http.MethodPost, "/_search", `{"from":5,"size":7,"timeout":"3s","_source":false,"track_total_hits":5,"ext":{"wlmsim":{"service_time":"1.5ms"}}}`, coordinator.Request{Query: all, From: 5, Size: 7, Timeout: 3 * time.Second, ServiceTime: 1500 * time.Microsecond}},
		{"parameters before body", http.MethodPost, "/_search?from=1&size=0&timeout=-1&allow_partial_search_results=false", `{"from":5,"size":7,"timeout":"3s"}`, coordinator.Request{Query: all, From: 1, Timeout: -1, ServiceTime: -1, AllowPartial: &no}},
		{"no time at all", http.MethodGet, "/_search?timeout=0", "", coordinator.Request{Query: all, Size: 10, Timeout: 1, ServiceTime: -1}},
		{"no work at all", http.MethodPost, "/_search", `{"ext":{"wlmsim":{"service_time":"0"}}}`, coordinator.Request{Query: all, Size: 10}},
		{"q", http.MethodGet, "/_search?q=a%22b", "", coordinator.Request{Query: []byte(`{"query_string":{"query":"a\"b"}}`), Size: 10, ServiceTime: -1}},
		{"where and how", http.MethodGet, "/_search?preference=_shards:0,2%7C_local&routing=a,b&search_type=dfs_query_then_fetch&cancel_after_time_interval=5s&max_concurrent_shard_requests=3&batched_reduce_size=2", "", coordinator.Request{
			Query: all, Size: 10, ServiceTime: -1, Preference: "_shards:0,2|_local", Routing: "a,b", CancelAfter: 5 * time.Second, MaxConcurrentShards: 3, BatchedReduce: 2}},
		{"a distribution", http.MethodPost, "/_search", `{"ext":{"wlmsim":{"service_time":{"lognormal":{"p50":"2ms","p99":"9ms"}}}},"sort":["_doc","_score"]}`, coordinator.Request{
			Query: all, Size: 10, ServiceTime: -1, Service: cluster.ServiceTime{Distribution: cluster.LogNormal, P50: 2 * time.Millisecond, P99: 9 * time.Millisecond}}},
		{"a scroll", http.MethodPost, "/logs/_search?scroll=1m", `{"size":100,"sort":"_doc"}`, coordinator.Request{Index: "logs", Query: all, Size: 100, ServiceTime: -1, Scroll: time.Minute}},
		{"a page by the body", http.MethodPost, "/_search/scroll", `{"scroll_id":"abc","scroll":"2m"}`, coordinator.Request{Query: all, Size: 10, ServiceTime: -1, ScrollID: "abc", Scroll: 2 * time.Minute}},
		{"a page by the path", http.MethodGet, "/_search/scroll/abc?scroll=1m", "", coordinator.Request{Query: all, Size: 10, ServiceTime: -1, ScrollID: "abc", Scroll: time.Minute}},
		{"a page by a parameter", http.MethodGet, "/_search/scroll?scroll_id=abc", "", coordinator.Request{Query: all, Size: 10, ServiceTime: -1, ScrollID: "abc"}},
		{"a point in time", http.MethodPost, "/_search", `{"pit":{"id":"xyz","keep_alive":"1m"}}`, coordinator.Request{Query: all, Size: 10, ServiceTime: -1, PointID: "xyz", KeepAlive: time.Minute}},
		{"lookups", http.MethodPost, "/_search", `{"query":{"bool":{"must":{"terms":{"a":{"index":"users","path":"p","query":{"match":{"b":1}},"routing":"r"},"boost":1.0}},"filter":[{"terms":{"c":["x"]}},{"nested":{"path":"d","query":{"terms":{"e":{"index":"u2","path":"p","query":{"terms":{"f":{"index":"u3","path":"p","query":{"match_all":{}}}}}}}}}}]}}}`, coordinator.Request{
			Query: []byte(`{"bool":{"filter":[{"terms":{"c":["x"]}},{"nested":{"path":"d","query":{"terms":{"e":{"index":"u2","path":"p","query":{"terms":{"f":{"index":"u3","path":"p","query":{"match_all":{}}}}}}}}}}],"must":{"terms":{"a":{"index":"users","path":"p","query":{"match":{"b":1}},"routing":"r"},"boost":1}}}}`),
			Size:  10, ServiceTime: -1, Lookups: []coordinator.Lookup{
				{Index: "u2", ServiceTime: -1, Query: []byte(`{"terms":{"f":{"index":"u3","path":"p","query":{"match_all":{}}}}}`), Lookups: []coordinator.Lookup{{Index: "u3", Query: all, ServiceTime: -1}}},
				{Index: "users", ServiceTime: -1, Query: []byte(`{"match":{"b":1}}`), Routing: "r"},
			}}},
		{"what only looks like a lookup", http.MethodPost, "/_search", `{"query":{"match":{"terms":{"query":"x"}}}}`, coordinator.Request{Query: []byte(`{"match":{"terms":{"query":"x"}}}`), Size: 10, ServiceTime: -1}},
		{"a lookup by id", http.MethodPost, "/_search", `{"query":{"terms":{"a":{"index":"users","id":"2","path":"p"}}}}`, coordinator.Request{Query: []byte(`{"terms":{"a":{"id":"2","index":"users","path":"p"}}}`), Size: 10, ServiceTime: -1}},
		{"count", http.MethodPost, "/logs/_count", `{"query":{"term":{"a":1}}}`, coordinator.Request{Index: "logs", Query: []byte(`{"term":{"a":1}}`), ServiceTime: -1, Count: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.cluster.apply(t, &cluster.CreateIndex{Name: "logs", Shards: 1})
			r := w.do(c.method, c.target, c.body, "X-Opaque-Id", "an id", rest.HeaderGroup, "a group")
			require.Equal(t, http.StatusOK, r.Code, r.Body)
			require.Equal(t, "an id", r.Header().Get("X-Opaque-Id"))
			c.want.ID, c.want.OpaqueID, c.want.GroupHeader = "an id", "an id", "a group"
			require.Equal(t, []coordinator.Request{c.want}, w.searcher.requests)
		})
	}
}

// Promise 5: every kind of refusal has its status.
func TestEveryKindHasAStatus(t *testing.T) {
	for kind, status := range map[cluster.Kind]int{
		cluster.IllegalArgument: 400, cluster.Parsing: 400, cluster.Validation: 400, cluster.ResourceExists: 400,
		cluster.ResourceNotFound: 404, cluster.IndexNotFound: 404, cluster.TooMany: 429,
		cluster.IllegalState: 500, cluster.NullPointer: 500,
		cluster.ClusterBlock: 503, cluster.NotDiscovered: 503, cluster.OutcomeUnknown: 503, "no_such_exception": 500,
	} {
		require.Equal(t, status, rest.StatusOf(kind), kind)
		w := newWorld(t)
		w.cluster.broken = &cluster.Error{Kind: kind, Reason: "because"}
		r := w.do(http.MethodDelete, "/_wlm/workload_group/x", "")
		require.Equal(t, status, r.Code)
		require.Contains(t, reason(t, r), "because")
		if kind == cluster.OutcomeUnknown {
			require.Contains(t, reason(t, r), "outcome unknown")
		}
	}
}

// The health request waits in virtual time until what it waits for is there.
func TestHealthWaitsForWhatItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cluster.leader = ""
		began := time.Now()
		time.AfterFunc(3*time.Second, func() {
			w.cluster.mu.Lock()
			defer w.cluster.mu.Unlock()
			w.cluster.leader = "m1"
		})
		r := w.doConcurrently(http.MethodGet, "/_cluster/health?wait_for_status=green&wait_for_nodes=%3E%3D2", "")
		require.Equal(t, http.StatusOK, r.Code, r.Body)
		require.InDelta(t, 3*time.Second, time.Since(began), float64(100*time.Millisecond))

		began = time.Now()
		r = w.doConcurrently(http.MethodGet, "/_cluster/health?wait_for_nodes=3&timeout=5s", "")
		require.Equal(t, http.StatusRequestTimeout, r.Code)
		require.Contains(t, r.Body.String(), `"timed_out":true`)
		require.InDelta(t, 5*time.Second, time.Since(began), float64(100*time.Millisecond))
	})
}

// rest.answered comes once for each search, whatever its end, and for nothing
// else; it names search, group and status, and no user.
func TestStepAnsweredComesAfterEverySearch(t *testing.T) {
	var events []probe.Event
	w := newWorld(t, func(c *rest.Config) {
		c.Probe = probe.New("m1", probe.HookFunc(func(e probe.Event) { events = append(events, e) }))
	})
	w.do(http.MethodGet, "/_search", "", "X-Opaque-Id", "1", rest.HeaderUser, "alice")
	w.do(http.MethodGet, "/_count", "", "X-Opaque-Id", "2")
	w.searcher.answer = "rejected"
	w.do(http.MethodGet, "/_search", "", "X-Opaque-Id", "3", rest.HeaderUser, "alice")
	w.do(http.MethodPost, "/_search", "{", "X-Opaque-Id", "4")
	w.do(http.MethodGet, "/_wlm/stats", "", "X-Opaque-Id", "5")
	require.Equal(t, []probe.Event{
		{Step: probe.Answered, Node: "m1", Search: "1", Group: "id-x", Detail: "200"},
		{Step: probe.Answered, Node: "m1", Search: "2", Group: "id-x", Detail: "200"},
		{Step: probe.Answered, Node: "m1", Search: "3", Group: "id-x", Detail: "429"},
		{Step: probe.Answered, Node: "m1", Search: "4", Detail: "400"},
	}, events)
}

// Numbers come out as Java writes doubles.
func TestResourceLimitsLookLikeJavasDoubles(t *testing.T) {
	for given, want := range map[string]string{
		"0.3": "0.3", "1": "1.0", "1.0": "1.0", "1e0": "1.0", "0.30": "0.3", "0.001": "0.001", "0.00099": "9.9E-4", "1e-4": "1.0E-4",
		"0.1234567890123456789": "0.12345678901234568",
	} {
		w := newWorld(t)
		r := w.do(http.MethodPut, "/_wlm/workload_group", `{"name":"g","resiliency_mode":"soft","resource_limits":{"memory":`+given+`}}`)
		require.Contains(t, bodyOf(r), `"resource_limits":{"memory":`+want+`}`, given)
		requireJSON(t, r.Body.Bytes())
	}
}

func TestMetricsCountAnswersAndNameNoUser(t *testing.T) {
	w := newWorld(t)
	w.do(http.MethodGet, "/_search", "", rest.HeaderUser, "hush-hush")
	w.searcher.answer = "rejected"
	w.do(http.MethodGet, "/_search", "", rest.HeaderUser, "hush-hush")
	r := w.do(http.MethodGet, "/_wlmsim/metrics", "", "Accept-Encoding", "gzip")
	text := r.Body.String()
	for _, line := range []string{
		`wlmsim_http_answers_total{class="2xx",route="/_search"} 1`, `wlmsim_http_answers_total{class="4xx",route="/_search"} 1`,
		`wlmsim_http_throttled_total{route="/_search"} 1`, `wlmsim_permits_held{group="id-x"} 11`, `wlmsim_members_alive 2`,
		`wlmsim_searches_total{group="id-x",outcome="throttled"} 3`, `wlmsim_state_version 3`,
	} {
		require.Contains(t, text, line+"\n")
	}
	require.NotContains(t, text, "hush-hush")
	require.True(t, strings.HasPrefix(r.Header().Get("Content-Type"), "text/plain"))
}

func TestConfigFaultsComeAllAtOnce(t *testing.T) {
	_, err := rest.New(rest.Config{
		AllowHolds: true,
		Users:      map[string]rest.User{"": {}, "a": {PasswordHash: []byte("plain"), Roles: []string{""}}},
	})
	require.Error(t, err)
	for _, fault := range []string{"Cluster is", "Searcher is", "Contexts is", "Permits is", "Outcomes is", "Holds, which AllowHolds needs", `user "" has a name`, `user "a" has no bcrypt hash`, `user "a" has a role`} {
		require.ErrorContains(t, err, fault)
	}
}

func TestServerBounds(t *testing.T) {
	w := newWorld(t, func(c *rest.Config) { c.Log = slog.New(slog.NewTextHandler(io.Discard, nil)) })
	s := rest.NewServer(w.handler)
	require.Equal(t, 4<<20, s.MaxHeaderBytes)
	require.Positive(t, s.ReadHeaderTimeout)
	require.Positive(t, s.IdleTimeout)
	require.Positive(t, s.ReadTimeout)
	require.Zero(t, s.WriteTimeout, "net/http would cut off a search that runs longer")
}

// search_after is refused as OpenSearch refuses it where it does, and else says
// what to do instead.
func TestSearchAfterIsRefused(t *testing.T) {
	for _, row := range []struct{ query, body, want string }{
		{"", `"search_after":[1]`, "Sort must contain at least one field."},
		{"", `"search_after":[1.5],"sort":"_score"`, "Sort must contain at least one field."},
		{"", `"search_after":["a",null,true],"sort":["_score","_doc"]`, "search_after has 3 value(s) but sort has 2."},
		{"", `"search_after":[1],"sort":["_doc"],"from":5`, "`from` parameter must be set to 0 when `search_after` is used."},
		{"?scroll=1m", `"search_after":[1],"sort":["_doc"]`, "`search_after` cannot be used in a scroll context."},
		{"", `"sort":["_doc"],"search_after":[1]`, "[search_after] is not simulated, since documents have no fields: page by from and size, or by a scroll"},
		{"", `"search_after":[]`, "Values must contains at least one value."},
		{"", `"search_after":1`, "Unknown key for a VALUE_NUMBER in [search_after]: it is an array, a value for each sort"},
		{"", `"search_after":null`, "Unknown key for a VALUE_NULL in [search_after]: it is an array, a value for each sort"},
		{"", `"search_after":[1,[2]]`, "Expected [VALUE_STRING] or [VALUE_NUMBER] or [VALUE_BOOLEAN] or [VALUE_NULL] but found [START_ARRAY] inside search_after."},
	} {
		w := newWorld(t)
		r := w.do(http.MethodPost, "/_search"+row.query, "{"+row.body+"}")
		require.Equal(t, http.StatusBadRequest, r.Code, row.body)
		require.Equal(t, row.want, reason(t, r), row.body)
		require.Equal(t, http.StatusBadRequest, w.do(http.MethodPost, "/_count", "{"+row.body+"}").Code, "a count has none")
	}
}
