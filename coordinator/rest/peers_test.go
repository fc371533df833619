package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/coordinator/rest"
)

// What OpenSearch's own integration tests do over HTTP, see docs/peer-tests.md.

// tagged says whether a search of an index is given to a throttled group.
func (l *liveWorld) tagged(index string, headers ...string) bool {
	r := l.do(http.MethodGet, "/"+index+"/_search", "", headers...)
	require.Equal(l.t, http.StatusOK, r.Code, r.Body)
	return r.Header().Get(rest.HeaderPermit) == "true"
}

// rule creates a rule, or changes the one of an id, and has the node see it.
func (l *liveWorld) rule(id, body string) string {
	r := l.do(http.MethodPut, strings.TrimSuffix("/_rules/workload_group/"+id, "/"), body)
	require.Equal(l.t, http.StatusOK, r.Code, r.Body)
	l.coordinator.RefreshRules()
	var made struct{ ID string }
	requireDecode(l.t, r.Body.Bytes(), &made)
	return made.ID
}

func newRuleWorld(t *testing.T) (l *liveWorld, other string) {
	l = newLiveWorld(t, `{"attribute":"group","node_limit":1}`)
	close(l.peers.letGo)
	for _, index := range []string{"test_a", "test_b", "elsewhere"} {
		l.cluster.apply(t, &cluster.CreateIndex{Name: index, Shards: 1})
	}
	before := l.cluster.State()
	require.Equal(t, http.StatusOK, l.createGroup("other", `{"attribute":"group","node_limit":1}`).Code)
	require.NoError(t, l.throttle.ClusterChanged(before, l.cluster.State()))
	l.coordinator.RefreshRules()
	return l, l.cluster.State().GroupNamed("other").ID
}

func TestARuleTagsTheSearchesThatItMatches(t *testing.T) {
	for _, c := range []struct {
		name, attributes string
		headers          []string // of a search of logs that the rule tags
	}{
		{"exact", `"index_pattern":["logs"]`, nil},
		{"prefix", `"index_pattern":["lo*"]`, nil},
		{"user", `"principal":{"username":["alice"]}`, []string{rest.HeaderUser, "alice"}},
		{"role", `"principal":{"role":["x","analyst"]}`, []string{rest.HeaderUser, "alice", rest.HeaderRole, "analyst"}},
		{"all", `"index_pattern":["logs"],"principal":{"username":["alice"],"role":["analyst"]}`, []string{rest.HeaderUser, "alice", rest.HeaderRole, "analyst"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, _ := newRuleWorld(t)
			require.False(t, l.tagged("logs", c.headers...), "there is no rule yet")
			l.rule("", fmt.Sprintf(`{"description":"d","workload_group":%q,%s}`, l.group, c.attributes))
			require.True(t, l.tagged("logs", c.headers...))
			require.False(t, l.tagged("elsewhere"))
			require.Equal(t, c.headers == nil, l.tagged("logs", rest.HeaderUser, "mallory"))
		})
	}
}

// An expression over the indices of two groups is of neither.
func TestAnExpressionOverTwoGroupsIsTaggedWithNeither(t *testing.T) {
	l, other := newRuleWorld(t)
	l.rule("", fmt.Sprintf(`{"description":"a","workload_group":%q,"index_pattern":["test_a"]}`, l.group))
	l.rule("", fmt.Sprintf(`{"description":"b","workload_group":%q,"index_pattern":["test_b"]}`, other))
	require.True(t, l.tagged("test_a"))
	require.True(t, l.tagged("test_b"))
	require.False(t, l.tagged("test_*"))
	require.False(t, l.tagged("test_a,test_b"))
}

func TestAnUpdatedRuleTagsOtherSearches(t *testing.T) {
	l, _ := newRuleWorld(t)
	id := l.rule("", fmt.Sprintf(`{"description":"d","workload_group":%q,"index_pattern":["logs"]}`, l.group))
	require.True(t, l.tagged("logs"))
	require.Equal(t, id, l.rule(id, `{"index_pattern":["elsewhere"]}`))
	require.False(t, l.tagged("logs"))
	require.True(t, l.tagged("elsewhere"))
	r := l.do(http.MethodDelete, "/_rules/workload_group/"+id, "")
	require.Equal(t, http.StatusOK, r.Code)
	require.True(t, l.tagged("elsewhere"), "until the node's view is refreshed")
	l.coordinator.RefreshRules()
	require.False(t, l.tagged("elsewhere"))
}

func TestRulesThatOpenSearchsTestsRefuse(t *testing.T) {
	l, _ := newRuleWorld(t)
	long := strings.Repeat("x", 101)
	for _, c := range []struct {
		name, group, patterns, want string
	}{
		{"unknown group", "nobody", `["a"]`, "nobody is not a valid workload group id"},
		{"eleven patterns", l.group, `["1","2","3","4","5","6","7","8","9","10","11"]`, "Each attribute can only have a maximum of 10 values. The input attribute index_pattern has length 11, which exceeds this limit."},
		{"no pattern", l.group, `[]`, "Attribute values for index_pattern cannot be empty."},
		{"an empty pattern", l.group, `[""]`, "Attribute value [] is invalid (empty or exceeds 100 characters)"},
		{"a long pattern", l.group, `["` + long + `"]`, "Attribute value [" + long + "] is invalid (empty or exceeds 100 characters)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := l.do(http.MethodPut, "/_rules/workload_group", fmt.Sprintf(`{"description":"d","workload_group":%q,"index_pattern":%s}`, c.group, c.patterns))
			require.Equal(t, http.StatusBadRequest, r.Code)
			require.Contains(t, reason(t, r), c.want)
		})
	}
	r := l.do(http.MethodDelete, "/_rules/workload_group/nobody", "")
	require.Equal(t, http.StatusNotFound, r.Code)
	require.Equal(t, "Rule with ID nobody not found.", reason(t, r))
}

// Create, read, update and delete a group; sums over 1.0; unknown names.
func TestAGroupsLifeOverHTTP(t *testing.T) {
	w := newWorld(t)
	group := func(name, limits string) string {
		return fmt.Sprintf(`{"name":%q,"resiliency_mode":"enforced","resource_limits":%s}`, name, limits)
	}
	require.Equal(t, http.StatusOK, w.do(http.MethodPut, "/_wlm/workload_group", group("analytics", `{"cpu":0.4,"memory":0.2}`)).Code)
	require.Equal(t, http.StatusOK, w.do(http.MethodGet, "/_wlm/workload_group/analytics", "").Code)
	require.Equal(t, http.StatusOK, w.do(http.MethodPut, "/_wlm/workload_group/analytics", `{"resource_limits":{"cpu":0.8}}`).Code)
	require.Contains(t, w.do(http.MethodGet, "/_wlm/workload_group/", "").Body.String(), `"resource_limits":{"cpu":0.8,"memory":0.2}`)
	for _, refused := range []struct{ method, path, body string }{
		{http.MethodPut, "/_wlm/workload_group", group("second", `{"cpu":0.3}`)},
		{http.MethodPut, "/_wlm/workload_group/analytics", `{"resource_limits":{"cpu":1.1}}`},
		{http.MethodPut, "/_wlm/workload_group", group("analytics", `{"memory":0.1}`)},
	} {
		require.Equal(t, http.StatusBadRequest, w.do(refused.method, refused.path, refused.body).Code, refused.body)
	}
	require.Equal(t, "Total resource allocation for cpu will go above the max limit of 1.0.", reason(t, w.do(http.MethodPut, "/_wlm/workload_group", group("second", `{"cpu":0.3}`))))
	require.Equal(t, `{"acknowledged":true}`, bodyOf(w.do(http.MethodDelete, "/_wlm/workload_group/analytics", "")))
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		r := w.do(method, "/_wlm/workload_group/analytics", `{"resource_limits":{"cpu":0.1}}`)
		require.Equal(t, http.StatusNotFound, r.Code, method)
		require.Equal(t, "No WorkloadGroup exists with the provided name: analytics", reason(t, r))
	}
}
