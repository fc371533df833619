package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/coordinator/rest"
)

// naiveFilter is filter_path by way of regular expressions over the whole
// paths of a decoded answer.
type naiveFilter struct{ include, exclude *regexp.Regexp }

func newNaiveFilter(patterns []string) (f naiveFilter) {
	var include, exclude []string
	for _, p := range patterns {
		if plain, minus := strings.CutPrefix(p, "-"); minus {
			exclude = append(exclude, naivePattern(plain))
		} else {
			include = append(include, naivePattern(p))
		}
	}
	f.include, f.exclude = joined(include), joined(exclude)
	return f
}

func joined(patterns []string) *regexp.Regexp {
	if patterns == nil {
		return nil
	}
	return regexp.MustCompile(`^(` + strings.Join(patterns, "|") + `)$`)
}

// naivePattern turns a pattern into an expression over names with a slash
// behind each.
func naivePattern(pattern string) string {
	var b strings.Builder
	segments := strings.Split(pattern, ".")
	for i, s := range segments {
		switch {
		case s == "**" && i == len(segments)-1:
			b.WriteString(`([^/]*/)+`)
		case s == "**":
			b.WriteString(`([^/]*/)*`)
		default:
			b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(s), `\*`, `[^/]*`) + `/`)
		}
	}
	return b.String()
}

// left returns what is left of a value at a path, and whether that is
// anything.
func left(v any, path string, meant *regexp.Regexp, excluding bool) (any, bool) {
	if meant == nil {
		return v, true
	}
	if path != "" && meant.MatchString(path) {
		return v, !excluding
	}
	switch v := v.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, inner := range v {
			if some, ok := left(inner, path+name+"/", meant, excluding); ok {
				kept[name] = some
			}
		}
		return kept, len(kept) > 0 || excluding && len(v) == 0
	case []any:
		kept := []any{}
		for _, inner := range v {
			if some, ok := left(inner, path, meant, excluding); ok {
				kept = append(kept, some)
			}
		}
		return kept, len(kept) > 0 || excluding && len(v) == 0
	}
	return v, excluding
}

func (f naiveFilter) apply(v any) any {
	for _, pass := range []struct {
		meant     *regexp.Regexp
		excluding bool
	}{{f.exclude, true}, {f.include, false}} {
		some, ok := left(v, "", pass.meant, pass.excluding)
		if !ok {
			some = map[string]any{}
		}
		v = some
	}
	return v
}

// Any filter_path leaves of an answer what the naive one leaves.
func TestFilterPathAgainstANaiveOne(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, http.StatusOK, w.createGroup("a", `{"attribute":"role","node_limit":3}`).Code)
	require.Equal(t, http.StatusOK, w.createGroup("b", `{}`).Code)
	require.Equal(t, http.StatusOK, w.do(http.MethodPut, "/logs", `{"settings":{"number_of_shards":2}}`).Code)
	targets := []string{"/_wlm/workload_group", "/_wlm/stats", "/_nodes", "/logs", "/logs/_search", "/_cluster/settings?include_defaults", "/_wlmsim/state"}
	names := []string{
		"workload_groups", "_nodes", "nodes", "name", "_id", "hits", "_index", "settings", "index", "wlmsim", "cpu", "throttling", "roles", "http", "persistent", "members",
		"*", "**", "*s", "_*", "*o*e*", "w*k*d_groups", "", "d1-id-0000000000000000",
	}
	rapid.Check(t, func(t *rapid.T) {
		target := rapid.SampledFrom(targets).Draw(t, "target")
		pattern := rapid.Custom(func(t *rapid.T) string {
			minus := rapid.SampledFrom([]string{"", "", "-"}).Draw(t, "minus")
			first := rapid.SampledFrom(names[:len(names)-2]).Draw(t, "first")
			return minus + strings.Join(append([]string{first}, rapid.SliceOfN(rapid.SampledFrom(names), 0, 3).Draw(t, "rest")...), ".")
		})
		patterns := rapid.SliceOfN(pattern, 1, 3).Draw(t, "patterns")
		patterns = slices.DeleteFunc(patterns, func(p string) bool { return strings.HasSuffix(p, ".") }) // a dot at the end says nothing
		if len(patterns) == 0 {
			return
		}
		with := "?"
		if strings.Contains(target, "?") {
			with = "&"
		}
		whole := w.do(http.MethodGet, target, "")
		got := w.do(http.MethodGet, target+with+"filter_path="+url.QueryEscape(strings.Join(patterns, ",")), "")
		require.Equal(t, http.StatusOK, got.Code, got.Body)
		require.JSONEq(t, encoded(t, newNaiveFilter(patterns).apply(decoded(t, whole.Body.Bytes()))), got.Body.String(), "%s of %s", patterns, target)
	})
}

func decoded(t require.TestingT, text []byte) (v any) {
	require.NoError(t, json.Unmarshal(text, &v))
	return v
}

func encoded(t require.TestingT, v any) string {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func TestAFilterPathHasABound(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("a.**,", 1000)
	r := w.do(http.MethodGet, "/_wlm/stats?filter_path="+url.QueryEscape(long[:4096]), "")
	require.Equal(t, http.StatusOK, r.Code)
	require.Equal(t, "{}", bodyOf(r))
	r = w.do(http.MethodGet, "/_wlm/stats?filter_path="+url.QueryEscape(long[:4097]), "")
	require.Equal(t, http.StatusBadRequest, r.Code)
	require.Equal(t, "filter_path of 4097 bytes is longer than 4096", reason(t, r))
}

// FuzzFilterPath: no filter_path makes an answer that is no JSON, or one with
// a name that the whole answer does not have.
func FuzzFilterPath(f *testing.F) {
	for _, seed := range []string{"_nodes", "**.cpu", "-**.cpu", "*", "**", "-*", `a\.b`, `\`, ".", "..", ",", "- -", "-", "a.**.b,-**.c.", "*.*.*.*t*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, filter string) {
		w := newWorld(t)
		require.Equal(t, http.StatusOK, w.createGroup("a", `{"attribute":"role","node_limit":3}`).Code)
		for _, target := range []string{"/_wlm/stats", "/_cat/nodes?format=json"} {
			separator := "?"
			if strings.Contains(target, "?") {
				separator = "&"
			}
			whole := w.do(http.MethodGet, target, "").Body.String()
			r := w.do(http.MethodGet, target+separator+"filter_path="+url.QueryEscape(filter), "")
			if r.Code == http.StatusBadRequest {
				require.Greater(t, len(filter), 4096)
				continue
			}
			require.LessOrEqual(t, r.Body.Len(), len(whole))
		}
	})
}

func TestMisspeltParametersAreExplained(t *testing.T) {
	w := newWorld(t)
	for target, want := range map[string]string{
		"/_list/wlm_stats?siz=3":               "request [/_list/wlm_stats] contains unrecognized parameter: [siz] -> did you mean [size]?",
		"/_list/wlm_stats?next_tokens=3&zzz=1": "request [/_list/wlm_stats] contains unrecognized parameters: [next_tokens] -> did you mean [next_token]?, [zzz]",
		"/_cat/nodes?full=1":                   "request [/_cat/nodes] contains unrecognized parameter: [full] -> did you mean [full_id]?",
		"/_wlm/workload_group/x?names=1":       "request [/_wlm/workload_group/x] contains unrecognized parameter: [names] -> did you mean [name]?",
		"/_cluster/health?wait_for=1":          "request [/_cluster/health] contains unrecognized parameter: [wait_for] -> did you mean any of [wait_for_nodes, wait_for_status]?",
	} {
		r := w.do(http.MethodGet, target, "")
		require.Equal(t, http.StatusBadRequest, r.Code)
		require.Equal(t, want, reason(t, r))
	}
}

// Pages of any size, in any order, hold every row once.
func TestPagesOfTheListHoldEveryRowOnce(t *testing.T) {
	w := newWorld(t)
	for i := range 12 {
		require.Equal(t, http.StatusOK, w.createGroup(fmt.Sprint("g", i), `{}`).Code)
	}
	list := func(query string) ([]string, string) {
		r := w.do(http.MethodGet, "/_list/wlm_stats?"+query, "")
		require.Equal(t, http.StatusOK, r.Code, r.Body)
		lines := strings.Split(strings.TrimSuffix(r.Body.String(), "\n"), "\n")
		last := lines[len(lines)-1]
		if token, more := strings.CutPrefix(last, "next_token "); more {
			return lines[:len(lines)-1], token
		}
		require.True(t, strings.HasPrefix(last, "No more pages available "), last)
		return lines[:len(lines)-1], ""
	}
	first, next := list("")
	require.Len(t, first, rest.ListPage)
	require.NotEmpty(t, next)
	for _, order := range []string{"", "order=desc", "sort=workload_group", "sort=workload_group&order=desc"} {
		all, none := list(order + "&size=100")
		require.Empty(t, none)
		require.Len(t, all, 2*13)
		for size := 1; size <= 27; size++ {
			var got []string
			token := ""
			for {
				rows, next := list(fmt.Sprintf("%s&size=%d&next_token=%s", order, size, url.QueryEscape(token)))
				require.LessOrEqual(t, len(rows), size)
				got = append(got, rows...)
				if token = next; next == "" {
					break
				}
			}
			require.Equal(t, cells(all), cells(got), "%s, %d a page", order, size)
		}
	}
}

// cells drops the blanks by which columns are laid out.
func cells(rows []string) (list []string) {
	for _, r := range rows {
		list = append(list, strings.Join(strings.Fields(r), " "))
	}
	return list
}

// The alias is off unless asked for.
func TestTheAliasIsOffByDefault(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, http.StatusNotFound, w.do(http.MethodGet, "/_wlm/query_group", "").Code)
	require.NotContains(t, w.do(http.MethodGet, "/_wlm/stats", "").Body.String(), "query_group")
	require.Equal(t, http.StatusBadRequest, w.do(http.MethodPut, "/_cluster/settings", `{"persistent":{"wlm.query_group.mode":"enabled"}}`).Code)
	w.do(http.MethodGet, "/_search", "", rest.HeaderQueryGroup, "some group")
	require.Empty(t, w.searcher.requests[0].GroupHeader)

	w = newWorld(t, func(c *rest.Config) { c.QueryGroupAlias = true })
	w.do(http.MethodGet, "/_search", "", rest.HeaderQueryGroup, "some group")
	w.do(http.MethodGet, "/_search", "", rest.HeaderQueryGroup, "some group", rest.HeaderGroup, "another")
	require.Equal(t, "some group", w.searcher.requests[0].GroupHeader)
	require.Equal(t, "another", w.searcher.requests[1].GroupHeader)
}
