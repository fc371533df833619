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

const groupHead = `"name":"g","resiliency_mode":"enforced","resource_limits":{"cpu":0.1}`

// C33: of the ways to write a number only plain digits from 1 to the maximum
// are taken, on both routes that take one.
func TestC33_NodeLimitIsAPlainIntegerInBounds(t *testing.T) {
	for _, text := range []string{
		`"10"`, `10.0`, `10.5`, `1e1`, `1e400`, `NaN`, `-0`, `true`, `[]`, `{}`, `2147483648`, `9007199254740993`,
		`9223372036854775808`, `-9223372036854775809`, `-1`, `-5`, `0`, `010`, `+1`, `0x10`, `1_0`, `1E2`, `Infinity`, `"NaN"`, ``,
	} {
		t.Run(text, func(t *testing.T) {
			w := newWorld(t)
			refused(t, w, http.MethodPut, "/_wlm/workload_group", `{`+groupHead+`,"throttling":{"attribute":"group","node_limit":`+text+`}}`, "node_limit")
			require.Equal(t, http.StatusOK, w.createGroup("g", `{"attribute":"group","node_limit":3}`).Code)
			w.cluster.proposed = 0
			refused(t, w, http.MethodPut, "/_wlm/workload_group/g", `{"throttling":{"node_limit":`+text+`}}`, "node_limit")
			require.Equal(t, "group 3", w.throttling("g"))
		})
	}
}

// refused sends a body that must be answered with 400 and a reason that names
// the field, before any command is proposed, or by the state that knows the
// rest of the group.
func refused(t *testing.T, w *world, method, path, body, names string) {
	t.Helper()
	r := w.do(method, path, body)
	require.Equal(t, http.StatusBadRequest, r.Code, r.Body)
	require.Contains(t, reason(t, r), names)
	require.Less(t, r.Body.Len(), 4096, "a refusal repeats too much of its request")
}

func TestC33_TheBoundsThemselvesAreTakenAndReadBack(t *testing.T) {
	for _, limit := range []string{"1", "2147483647"} {
		w := newWorld(t)
		r := w.createGroup("g", `{"attribute":"group","node_limit":`+limit+`}`)
		require.Equal(t, http.StatusOK, r.Code, r.Body)
		for _, path := range []string{"/_wlm/workload_group/g", "/_wlm/workload_group/g?local"} {
			require.Contains(t, bodyOf(w.do(http.MethodGet, path, "")), `"node_limit":`+limit+`}`)
		}
	}
}

// C33: the ways to break the body around the number, on every route that takes
// one.
func TestC33_BodiesThatAreNoPlainObjectAreRefused(t *testing.T) {
	deep := strings.Repeat("[", 10000) + strings.Repeat("]", 10000)
	deeper := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	huge := strings.Repeat("x", rest.MaxBody)
	for _, c := range []struct{ name, body, names string }{
		{"upper case key", `{` + groupHead + `,"throttling":{"attribute":"group","NODE_LIMIT":1}}`, "NODE_LIMIT"},
		{"upper case object", `{` + groupHead + `,"THROTTLING":{"attribute":"group","node_limit":1}}`, "THROTTLING"},
		{"key twice", `{` + groupHead + `,"throttling":{"attribute":"group","node_limit":1,"node_limit":2}}`, "throttling.node_limit"},
		{"escaped key twice", `{` + groupHead + `,"throttling":{"attribute":"group","node_limit":1,"node\u005flimit":2}}`, "throttling.node_limit"},
		{"object twice", `{` + groupHead + `,"throttling":null,"throttling":{"attribute":"group","node_limit":1}}`, "throttling"},
		{"unknown key", `{` + groupHead + `,"node_limit":1}`, "node_limit"},
		{"text after the end", `{` + groupHead + `} x`, "after the end"},
		{"second object", `{` + groupHead + `}{}`, "after the end"},
		{"byte-order mark", "\xef\xbb\xbf{" + groupHead + `}`, "byte-order mark"},
		{"UTF-16", "\xfe\xff\x00{", "not valid JSON"},
		{"array", `[{` + groupHead + `}]`, "JSON object"},
		{"null", `null`, "JSON object"},
		{"empty", ``, "body is required"},
		{"blank", "  \n", "not valid JSON"},
		{"cut off", `{` + groupHead + `,"throttling":{"attribute":"group","node_limit":1`, "node_limit"},
		{"comma before the end", `{` + groupHead + `,}`, "[resource_limits]"},
		{"comment", `{` + groupHead + `/* */}`, "[resource_limits]"},
		{"single quotes", `{'name':"g"}`, "not valid JSON"},
		{"10,000 arrays", `{` + groupHead + `,"throttling":{"attribute":"group","node_limit":` + deep + `}}`, "throttling.node_limit"},
		{"20,000 arrays", `{` + groupHead + `,"throttling":{"attribute":"group","node_limit":` + deeper + `}}`, "throttling.node_limit"},
		{"20,000 arrays in an unknown key", `{` + groupHead + `,"a":` + deeper + `}`, "[a"},
		{"invalid UTF-8 in the name", "{\"name\":\"g\xff\",\"resiliency_mode\":\"soft\",\"resource_limits\":{\"cpu\":0.1}}", "[name]"},
		{"half a surrogate pair", `{"name":"g\ud800","resiliency_mode":"soft","resource_limits":{"cpu":0.1}}`, "[name]"},
		{"invalid UTF-8 in a key", "{\"na\xffme\":1}", "UTF-8"},
		{"a control character", "{\"name\":\"a\nb\"}", "[name]"},
		{"10 MB of name", `{"name":"` + huge[:9_900_000] + `","resiliency_mode":"soft","resource_limits":{"cpu":0.1}}`, "WorkloadGroup.name"},
		{"over 10 MB of name", `{"name":"` + huge + `","resiliency_mode":"soft"}`, "[name]"},
		{"over 10 MB of blanks", `{"name":` + strings.Repeat(" ", rest.MaxBody) + `"g"}`, "longer than 10000000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			refused(t, w, http.MethodPut, "/_wlm/workload_group", c.body, c.names)
			require.Zero(t, w.cluster.Proposed())
			require.Equal(t, http.StatusOK, w.createGroup("g", "null").Code)
			if !strings.HasPrefix(c.name, "10 MB") { // an update does not look at the name
				refused(t, w, http.MethodPost, "/_wlm/workload_group/g", c.body, c.names)
				require.Equal(t, 1, w.cluster.Proposed())
			}
		})
	}
}

// Promise 1 on the other routes: what breaks every body breaks theirs.
func TestStrictBodiesOnEveryRoute(t *testing.T) {
	for _, route := range []struct{ method, path, good, key string }{
		{http.MethodPut, "/_rules/workload_group", `{"description":"d","workload_group":"x","index_pattern":["a"]}`, "description"},
		{http.MethodPut, "/_rules/workload_group/id", `{"description":"d"}`, "description"},
		{http.MethodPut, "/_cluster/settings", `{"persistent":{"wlm.workload_group.mode":"enabled"}}`, "persistent"},
		{http.MethodPut, "/logs", `{"settings":{"number_of_shards":1}}`, "settings"},
		{http.MethodPost, "/_search", `{"size":1}`, "size"},
		{http.MethodPost, "/_count", `{"query":{"match_all":{}}}`, "query"},
		{http.MethodPut, "/_wlmsim/holds/wlm.acquired", `{"count":1}`, "count"},
	} {
		for _, body := range []string{
			route.good + "x", route.good + route.good, "\xef\xbb\xbf" + route.good, route.good[:len(route.good)-1],
			strings.Replace(route.good, `"`+route.key+`"`, `"`+strings.ToUpper(route.key)+`"`, 1),
			route.good[:len(route.good)-1] + "," + route.good[1:],
			strings.Replace(route.good, `:`, ":\xff", 1),
			fmt.Sprintf(`{%q:[[{"a":`, route.key), `[]`, `"a"`,
		} {
			w := newWorld(t)
			r := w.do(route.method, route.path, body)
			require.Equal(t, http.StatusBadRequest, r.Code, "%s %s %q: %s", route.method, route.path, body, r.Body)
			require.Zero(t, w.cluster.Proposed())
			require.Empty(t, w.searcher.requests)
		}
	}
}

// C12, the API's half: what no writer may store is refused by name.
func TestC12_TheApiRefusesLimitsThatNoWriterShouldStore(t *testing.T) {
	for _, c := range []struct{ body, names string }{
		{`{` + groupHead + `,"throttling":{"attribute":"group","node_limit":0}}`, "node_limit"},
		{`{` + groupHead + `,"throttling":{"attribute":"group","node_limit":-5}}`, "throttling.node_limit must be non-negative but was -5"},
		{`{` + groupHead + `,"throttling":{"attribute":"group"}}`, "throttling.node_limit is required when throttling.attribute is set"},
		{`{` + groupHead + `,"throttling":{"attribute":"tenant","node_limit":1}}`, "throttling.attribute must be one of [group, username, role] but was 'tenant'"},
		{`{` + groupHead + `,"throttling":{"attribute":"","node_limit":1}}`, "throttling.attribute must be one of [group, username, role] but was ''"},
		{`{` + groupHead + `,"throttling":{"attribute":"Group","node_limit":1}}`, "throttling.attribute"},
		{`{` + groupHead + `,"throttling":{"node_limit":1}}`, "throttling.attribute is required when a throttle limit is set"},
		{`{"name":"","resiliency_mode":"soft","resource_limits":{"cpu":0.1}}`, "WorkloadGroup.name"},
		{`{"name":"` + strings.Repeat("n", 10000) + `","resiliency_mode":"soft","resource_limits":{"cpu":0.1}}`, "WorkloadGroup.name"},
		{`{"name":"g","resiliency_mode":"","resource_limits":{"cpu":0.1}}`, "WorkloadGroupMode"},
	} {
		w := newWorld(t)
		refused(t, w, http.MethodPut, "/_wlm/workload_group", c.body, c.names)
	}
}

// C36: what an update says by absence, null and {}.
func TestC36_FormsOfAPartialUpdate(t *testing.T) {
	const user5 = `{"attribute":"username","node_limit":5}`
	for _, c := range []struct {
		name, before, body string
		status             int
		after              string
	}{
		{"absent changes nothing", user5, `{"resource_limits":{"cpu":0.02}}`, 200, "username 5"},
		{"an empty body changes nothing", user5, `{}`, 200, "username 5"},
		{"one key leaves the other", user5, `{"throttling":{"node_limit":7}}`, 200, "username 7"},
		{"the other key too", user5, `{"throttling":{"attribute":"role"}}`, 200, "role 5"},
		{"an empty object removes all", user5, `{"throttling":{}}`, 200, "none"},
		{"null removes all", user5, `{"throttling":null}`, 200, "none"},
		{"null for both keys removes all", user5, `{"throttling":{"attribute":null,"node_limit":null}}`, 200, "none"},
		{"null for the limit leaves an attribute without one", user5, `{"throttling":{"node_limit":null}}`, 400, "username 5"},
		{"null for the attribute leaves a limit without one", user5, `{"throttling":{"attribute":null}}`, 400, "username 5"},
		{"null for one, a value for the other", user5, `{"throttling":{"attribute":null,"node_limit":7}}`, 400, "username 5"},
		{"a limit for a group that has none", `null`, `{"throttling":{"node_limit":7}}`, 400, "none"},
		{"both keys for a group that has none", `{}`, `{"throttling":` + user5 + `}`, 200, "username 5"},
		{"removing what is not there", `null`, `{"throttling":{}}`, 200, "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			require.Equal(t, http.StatusOK, w.createGroup("g", c.before).Code)
			r := w.do(http.MethodPut, "/_wlm/workload_group/g", c.body)
			require.Equal(t, c.status, r.Code, r.Body)
			require.Equal(t, c.after, w.throttling("g"))
		})
	}
}

func TestC36_SettingsFollowTheSameForms(t *testing.T) {
	for _, c := range []struct{ body, after string }{
		{`{}`, `{"search.batched_reduce_size":"5","search.max_buckets":"10"}`},
		{`{"settings":{"search.max_buckets":null}}`, `{"search.batched_reduce_size":"5"}`},
		{`{"settings":{"search":{"max_buckets":11}}}`, `{"search.batched_reduce_size":"5","search.max_buckets":"11"}`},
		{`{"settings":{}}`, `{}`},
		{`{"settings":null}`, `{}`},
	} {
		w := newWorld(t)
		r := w.do(http.MethodPut, "/_wlm/workload_group", `{`+groupHead+`,"settings":{"search.max_buckets":10,"search.batched_reduce_size":"5"}}`)
		require.Equal(t, http.StatusOK, r.Code, r.Body)
		r = w.do(http.MethodPut, "/_wlm/workload_group/g", c.body)
		require.Contains(t, bodyOf(r), `"settings":`+c.after+`,`)
	}
}

// C36: two updates through the API of two nodes, at the same time, are both
// there afterwards.
func TestC36_TwoPartialUpdatesAtOnceBothStay(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, http.StatusOK, w.createGroup("g", `{"attribute":"username","node_limit":5}`).Code)
	for round := range 100 {
		done := make(chan int)
		for _, body := range []string{
			fmt.Sprintf(`{"throttling":{"node_limit":%d}}`, round+1),
			fmt.Sprintf(`{"resource_limits":{"cpu":0.%03d}}`, round+1),
		} {
			go func() { done <- w.doConcurrently(http.MethodPut, "/_wlm/workload_group/g", body).Code }()
		}
		require.Equal(t, http.StatusOK, <-done)
		require.Equal(t, http.StatusOK, <-done)
		g := w.cluster.State().GroupNamed("g")
		require.Equal(t, int64(round+1), *g.Throttling.NodeLimit)
		require.InDelta(t, float64(round+1)/1000, g.ResourceLimits["cpu"], 1e-9)
	}
}

// A rule's page ends where the next one begins.
func TestRulesArePagedBySearchAfter(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, http.StatusOK, w.createGroup("g", "null").Code)
	id := w.cluster.State().GroupNamed("g").ID
	const rules = 2*rest.RulesPage + 1
	for i := range rules {
		r := w.do(http.MethodPut, "/_rules/workload_group", fmt.Sprintf(`{"description":"d","workload_group":%q,"principal.username":["user%d"]}`, id, i))
		require.Equal(t, http.StatusOK, r.Code, r.Body)
	}
	var seen []string
	for after := ""; ; {
		var page struct {
			Rules       []struct{ ID string }
			SearchAfter []string `json:"search_after"`
		}
		requireDecode(t, w.do(http.MethodGet, "/_rules/workload_group?search_after="+after, "").Body.Bytes(), &page)
		for _, r := range page.Rules {
			seen = append(seen, r.ID)
		}
		require.LessOrEqual(t, len(page.Rules), rest.RulesPage)
		if len(page.SearchAfter) == 0 {
			break
		}
		after = page.SearchAfter[0]
	}
	var want []string
	for _, r := range w.cluster.State().Rules() {
		want = append(want, r.ID)
	}
	require.Len(t, want, rules)
	require.Equal(t, want, seen)
}

// A state that was reached by another program may hold what the API refuses;
// it is shown as it is.
func TestStoredGroupsThatNoWriterShouldHaveStoredAreShown(t *testing.T) {
	w := newWorld(t)
	limit := int64(0)
	w.cluster.apply(t, &cluster.CreateGroup{Group: cluster.Group{ID: "old", Name: "old\xff", ResiliencyMode: "odd", Throttling: &cluster.Throttling{NodeLimit: &limit}}})
	require.Equal(t, `{"workload_groups":[{"_id":"old","name":"old`+"\ufffd"+`","resiliency_mode":"odd","resource_limits":{},"settings":{},"throttling":{"node_limit":0},"updated_at":0}]}`,
		bodyOf(w.do(http.MethodGet, "/_wlm/workload_group", "")))
}
