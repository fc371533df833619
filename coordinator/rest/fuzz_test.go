package rest_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/coordinator/rest"
)

// strict holds an accepted body to promise 1 by another parser's eyes: it is
// one object in UTF-8. (encoding/json takes duplicate and differently cased
// names, which the tables of C33 cover.)
func strict(t *testing.T, body string) map[string]any {
	t.Helper()
	var object map[string]any
	require.True(t, utf8.ValidString(body), "accepted although not UTF-8: %q", body)
	require.True(t, json.Valid([]byte(body)), "accepted although not JSON: %q", body)
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber() // a number of any size is JSON
	require.NoError(t, d.Decode(&object), "%q", body)
	require.NotNil(t, object)
	return object
}

// settle checks the answer of a write: a success moved the version by one and
// came from a strict body, and all else is a refusal that the table knows.
func settle(t *testing.T, w *world, method, path, body string) (accepted bool) {
	t.Helper()
	before := w.cluster.State().Version()
	r := w.do(method, path, body)
	if r.Code == http.StatusOK {
		require.Equal(t, before+1, w.cluster.State().Version())
		return true
	}
	require.Contains(t, []int{400, 404, 500}, r.Code, "%s", r.Body)
	if r.Code == 500 {
		require.Contains(t, r.Body.String(), string(cluster.NullPointer), "%q", body)
	}
	return false
}

func FuzzGroupBodies(f *testing.F) {
	for _, seed := range []string{
		`{` + groupHead + `,"throttling":{"attribute":"username","node_limit":10},"settings":{"search":{"max_buckets":1}}}`,
		`{` + groupHead + `,"throttling":{}}`, `{` + groupHead + `,"throttling":null,"settings":null}`, `{"throttling":{"node_limit":null}}`,
		`{"throttling":{"node_limit":1e1}}`, `{"name":"\ud800"}`, `{}`, ``, "\xef\xbb\xbf{}", `{"a":1,"a":2}`, `{"resource_limits":{"cpu":0.1}} x`, `{"resource_limits":{"cpu":1e400}}`,
		`{` + groupHead + `,"throttling":{"by":"role","node_limit":"+10"}}`, `{` + groupHead + `,"throttling":{"node_limit":"-0"}}`, `{"throttling":{"by":true,"node_limit":[1]},"resource_limits":{"cpu":" 0.1"}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for form, old := range map[cluster.DimensionKey]string{cluster.KeyAttribute: `{"attribute":"role","node_limit":3}`, cluster.KeyBy: `{"by":"role","node_limit":3}`} {
			in := func(c *rest.Config) { c.Dimension = form }
			w := newWorld(t, in)
			if settle(t, w, http.MethodPut, "/_wlm/workload_group", body) {
				object := strict(t, body)
				g := w.cluster.State().GroupNamed(object["name"].(string))
				require.NotNil(t, g)
				require.Empty(t, g.Faults(form), "%q", body)
			}
			w = newWorld(t, in)
			require.Equal(t, http.StatusOK, w.createGroup("old", old).Code)
			if settle(t, w, http.MethodPost, "/_wlm/workload_group/old", body) {
				strict(t, body)
				require.Empty(t, w.cluster.State().GroupNamed("old").Faults(form), "%q", body)
			}
		}
	})
}

// What a group is called comes back as it was, and finds the group again.
func FuzzGroupNames(f *testing.F) {
	for _, seed := range append(append([]string{"analytics", "a/b", "a?b#c", "..", ".", "%2F", ""}, separators...), lookalikes...) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		w := newWorld(t)
		quoted, err := json.Marshal(name)
		require.NoError(t, err)
		if !utf8.ValidString(name) {
			quoted = []byte(`"` + name + `"`) // the bytes as they are
		}
		body := `{"name":` + string(quoted) + `,"resiliency_mode":"soft","resource_limits":{"cpu":0.1}}`
		if !settle(t, w, http.MethodPut, "/_wlm/workload_group", body) {
			return
		}
		require.True(t, utf8.ValidString(name))
		g := w.cluster.State().GroupNamed(name)
		require.NotNil(t, g)
		r := w.do(http.MethodGet, "/_wlm/workload_group/"+percent(name), "")
		require.Equal(t, http.StatusOK, r.Code)
		var answer struct {
			Groups []struct{ Name string } `json:"workload_groups"`
		}
		requireDecode(t, r.Body.Bytes(), &answer)
		require.Equal(t, name, answer.Groups[0].Name)
		require.True(t, settle(t, w, http.MethodDelete, "/_wlm/workload_group/"+percent(name), ""))
		require.Equal(t, http.StatusNotFound, w.do(http.MethodGet, "/_wlm/workload_group/"+percent(name), "").Code)
	})
}

func FuzzRuleBodies(f *testing.F) {
	for _, seed := range []string{
		`{"description":"d","workload_group":"id-0000000000000000001","index_pattern":["logs*"],"principal":{"username":["a"],"role":["b"]}}`,
		`{"description":"d","workload_group":"id-0000000000000000001","principal.username":["a"]}`, `{"description":""}`, `{"principal":{}}`, `{"index_pattern":[1]}`, `{}`, `{"index_pattern":["a"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := newWorld(t)
		require.Equal(t, http.StatusOK, w.createGroup("g", "null").Code)
		if settle(t, w, http.MethodPut, "/_rules/workload_group", body) {
			strict(t, body)
			require.NoError(t, w.cluster.State().Rules()[0].Check())
			settle(t, w, http.MethodPut, "/_rules/workload_group/"+w.cluster.State().Rules()[0].ID, body)
			w.do(http.MethodGet, "/_rules/workload_group?pretty", "")
		}
	})
}

// Values of a rule's attributes come back as they were.
func FuzzRuleNames(f *testing.F) {
	for _, seed := range append(append([]string{"logs*", ""}, separators...), lookalikes...) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		w := newWorld(t)
		require.Equal(t, http.StatusOK, w.createGroup("g", "null").Code)
		body, err := json.Marshal(map[string]any{"description": "d", "workload_group": w.cluster.State().GroupNamed("g").ID, "principal": map[string]any{"username": []string{name}}})
		require.NoError(t, err)
		if !settle(t, w, http.MethodPut, "/_rules/workload_group", string(body)) {
			return
		}
		var answer struct {
			Rules []struct{ Principal struct{ Username []string } }
		}
		requireDecode(t, w.do(http.MethodGet, "/_rules/workload_group", "").Body.Bytes(), &answer)
		require.Equal(t, []string{string([]rune(name))}, answer.Rules[0].Principal.Username)
	})
}

func FuzzSearchBodies(f *testing.F) {
	for _, seed := range []string{
		`{"search_after":[1,"a",null],"sort":["_doc"]}`, `{"search_after":[[]]}`,
		`{"query":{"bool":{"must":[{"match":{"a":"b"}}]}},"from":1,"size":2,"timeout":"1s","track_total_hits":true,"ext":{"wlmsim":{"service_time":"5ms"}}}`,
		`{"query":{"match_all":{}}}`, `{"query":{}}`, `{"track_total_hits":7}`, `{"_source":["a"]}`, `{"size":-1}`, `{"query":{"a":1e999}}`, ``, `{"ext":{}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := newWorld(t)
		r := w.do(http.MethodPost, "/_search", body)
		require.Contains(t, []int{200, 400}, r.Code)
		if r.Code == http.StatusBadRequest {
			require.Empty(t, w.searcher.requests)
			return
		}
		asked := w.searcher.requests[0]
		require.True(t, json.Valid(asked.Query))
		require.LessOrEqual(t, asked.From+asked.Size, rest.MaxResultWindow)
		if body == "" {
			return
		}
		strict(t, body)
		// What was made canonical stays so, and asks for the same.
		again, err := json.Marshal(map[string]json.RawMessage{"query": asked.Query})
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, w.do(http.MethodPost, "/_search", string(again)).Code)
		require.Equal(t, string(asked.Query), string(w.searcher.requests[1].Query))
	})
}

func FuzzSettingsBodies(f *testing.F) {
	for _, seed := range []string{
		`{"persistent":{"wlm":{"workload_group":{"mode":"enabled"}}},"transient":{"wlm.workload_group.duress_streak":4}}`,
		`{"persistent":{"wlm.workload_group.mode":null}}`, `{"persistent":{}}`, `{"persistent":{"a":{"b":[]}}}`, `{"transient":{"":{"":1}}}`, `{}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := newWorld(t)
		if settle(t, w, http.MethodPut, "/_cluster/settings", body) {
			strict(t, body)
			known := cluster.KnownSettings()
			for key := range w.cluster.State().Settings().Persistent {
				require.Contains(t, known, key)
			}
		}
		w.do(http.MethodGet, "/_cluster/settings?include_defaults&pretty", "")
	})
}

func FuzzIndexBodies(f *testing.F) {
	for _, seed := range []string{
		`{"settings":{"number_of_shards":3,"number_of_replicas":0,"wlmsim.service_time":"20ms"}}`,
		`{"settings":{"index":{"wlmsim":{"service_time":{"lognormal":{"p50":"20ms","p99":"120ms"}}}}}}`,
		`{"settings":{"wlmsim":{"service_time":{"uniform":{"min":"1ms","max":"2s"}}}}}`, `{"settings":{"wlmsim.service_time":{"exponential":{"mean":"1.5ms"}}}}`, `{"settings":{}}`, ``, `{}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := newWorld(t)
		if !settle(t, w, http.MethodPut, "/logs", body) {
			return
		}
		if body != "" {
			strict(t, body)
		}
		// What GET says of the service time makes an equal index.
		x := w.cluster.State().Index("logs")
		var answer map[string]struct {
			Settings struct {
				Index struct {
					Wlmsim json.RawMessage
				}
			}
		}
		requireDecode(t, w.do(http.MethodGet, "/logs", "").Body.Bytes(), &answer)
		again := `{"settings":{"wlmsim":` + string(answer["logs"].Settings.Index.Wlmsim) + `}}`
		require.True(t, settle(t, w, http.MethodPut, "/again", again), again)
		copied := w.cluster.State().Index("again").ServiceTime
		if x.ServiceTime.Distribution == "" {
			x = &cluster.Index{ServiceTime: cluster.ServiceTime{Distribution: cluster.Constant}}
		}
		require.True(t, reflect.DeepEqual(x.ServiceTime, copied), "%+v came back as %+v", x.ServiceTime, copied)
	})
}

// Names in headers, as bytes and percent-encoded.
func FuzzPrincipals(f *testing.F) {
	for _, seed := range append(append([]string{"%zz", ""}, separators...), lookalikes...) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		w := newWorld(t)
		r := w.do(http.MethodGet, "/_search", "", rest.HeaderUser, percent(name), rest.HeaderRole, name)
		require.Contains(t, []int{200, 400}, r.Code)
		if r.Code == 200 && name != "" {
			require.Equal(t, name, w.searcher.principals[0].User)
		}
	})
}
