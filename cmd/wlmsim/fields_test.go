package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The JSON that scripts read: what stands in DESIGN of `run` and `explore`, by
// name and type, and what there is beside it. A value is a type, a map of
// members, a list of one that stands for all, or a choice of texts.
type (
	members = map[string]any
	list    = []any
	choice  []string
	byName  struct{ each any } // an object whose names are not fixed
	present struct{ may any }  // may be left out
)

const (
	text   = "text"
	number = "number"
	truth  = "truth"
)

var verdictChoice = choice{"held", "broken", "undecided"}

var runFields = members{"results": list{members{
	"scenario": text, "file": text, "seed": number, "profile": text, "verdict": verdictChoice,
	"virtual_seconds": number, "wall_seconds": number, "trace_hash": text,
	"searches": members{"sent": number, "completed": number, "throttled": number, "failed": number, "cancelled": number},
	"groups": byName{members{
		"total_completions": number, "total_rejections": number, "total_cancellations": number, "total_throttled": number,
		"total_would_throttle": present{number},
	}},
	"latency_ms": members{"p50": number, "p90": number, "p99": number, "max": number},
	"checks":     list{members{"name": text, "verdict": verdictChoice, "message": text, "line": number}},
	"repeat":     text,
}}, "differences": present{list{members{"file": text, "what": text, "under": byName{text}}}}}

var exploreFields = members{"results": list{members{
	"scenario": text, "file": text, "profile": text, "strategy": choice{"dfs", "pct", "random", "replay"}, "schedules": number, "pruned": number,
	"complete": truth, "trace_hash": present{text}, "wall_seconds": number,
	"outcomes": list{members{
		"observed":  members{"status": number, "reason": text, "refused": truth, "took": text},
		"schedules": number, "forbidden": truth, "required": truth, "schedule": text, "preemptions": number,
	}},
	"checks":  list{members{"name": text, "verdict": verdictChoice, "message": text, "line": number, "schedule": present{text}}},
	"verdict": verdictChoice, "repeat": text,
}}}

// unlike lists where a document is not as it is said to be.
func unlike(path string, got, want any) (faults []string) {
	kind := fmt.Sprintf("%s is a %T", path, got)
	switch w := want.(type) {
	case members:
		g, ok := got.(map[string]any)
		if !ok {
			return []string{kind}
		}
		for _, name := range slices.Sorted(maps.Keys(w)) {
			member, there := g[name]
			may, optional := w[name].(present)
			switch {
			case there && optional:
				faults = append(faults, unlike(path+"."+name, member, may.may)...)
			case there:
				faults = append(faults, unlike(path+"."+name, member, w[name])...)
			case !optional:
				faults = append(faults, path+"."+name+" is missing")
			}
		}
		for _, name := range slices.Sorted(maps.Keys(g)) {
			if _, known := w[name]; !known {
				faults = append(faults, path+"."+name+" is new")
			}
		}
		return faults
	case list:
		g, ok := got.([]any)
		if !ok || len(g) == 0 {
			return []string{kind + ", or empty"}
		}
		for i := range g {
			faults = append(faults, unlike(fmt.Sprintf("%s[%d]", path, i), g[i], w[0])...)
		}
		return faults
	case byName:
		g, ok := got.(map[string]any)
		if !ok || len(g) == 0 {
			return []string{kind + ", or empty"}
		}
		for _, name := range slices.Sorted(maps.Keys(g)) {
			faults = append(faults, unlike(path+"."+name, g[name], w.each)...)
		}
		return faults
	case choice:
		if s, ok := got.(string); !ok || !slices.Contains(w, s) {
			return []string{fmt.Sprintf("%s is %v, none of %v", path, got, w)}
		}
		return nil
	}
	is := map[any]bool{text: false, number: false, truth: false}
	switch got.(type) {
	case string:
		is[text] = true
	case float64:
		is[number] = true
	case bool:
		is[truth] = true
	}
	if !is[want] {
		return []string{kind + fmt.Sprintf(", not a %v", want)}
	}
	return nil
}

func requireFields(t *testing.T, document string, want any) {
	t.Helper()
	var got any
	require.NoError(t, json.Unmarshal([]byte(document), &got))
	require.Empty(t, unlike("", got, want))
}

const fieldsFile = `version: 1
name: Two searches meet a limit of one
cluster: {managers: 1, data: 1}
groups: [{name: narrow, resiliency_mode: enforced, resource_limits: {cpu: 0.1}, throttling: {attribute: group, node_limit: 1}}]
steps:
  - {at: 1s, search: {id: one, user: bob, group: narrow, service_time: 1s}}
  - {at: 1s, search: {id: two, user: bob, group: narrow}}
expect: [two.status == 200]
explore:
  node: m1
  actors: {a: [{search: {id: one, user: bob, group: narrow, hold: true}}], b: [{search: {id: two, user: bob, group: narrow}}]}
  observe: {status: two.status, reason: two.error.type, refused: two.status == 429, took: two.took}
  forbid: [refused]
`

func TestTheJSONOfRunHasItsFields(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	require.NoError(t, os.WriteFile(path, []byte(fieldsFile), 0o666))
	_, out, errs := command("run", path, "--format", "json", "--profile", "submitted,reviewed")
	require.NotEmpty(t, out, errs)
	requireFields(t, out, runFields)
	_, merged, errs := command("explore", path, "--format", "json", "--profile", "submitted,reviewed")
	require.NotEmpty(t, merged, errs)
	requireFields(t, merged, exploreFields)
}

func TestFieldsThatAreMissingRenamedOrOfAnotherTypeAreFound(t *testing.T) {
	for document, want := range map[string]string{
		`{"results": [{"name": "x", "verdict": "held", "message": ""}]}`:                      ".results[0].line is missing",
		`{"results": [{"name": "x", "verdict": "held", "message": "", "row": 1, "line": 1}]}`: ".results[0].row is new",
		`{"results": [{"name": "x", "verdict": "held", "message": "", "line": "1"}]}`:         ".results[0].line is a string, not a number",
		`{"results": [{"name": "x", "verdict": "good", "message": "", "line": 1}]}`:           ".results[0].verdict is good, none of [held broken undecided]",
		`{"results": []}`: ".results is a []interface {}, or empty",
	} {
		var got any
		require.NoError(t, json.Unmarshal([]byte(document), &got))
		require.Equal(t, []string{want}, unlike("", got, members{"results": list{members{"name": text, "verdict": verdictChoice, "message": text, "line": number}}}))
	}
}
