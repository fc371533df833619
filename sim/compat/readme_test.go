package compat_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pauses are what a person waits for, and what the test waits for in its
// place, so that a slow machine changes nothing: until every node has a view
// of the rules that is as new as its state, and until alice's search holds its
// permit.
var pauses = map[string]string{
	"sleep 2":   `for node in $NODES; do until curl -s $node/_wlmsim/state | sed 's/.*"version":\([0-9]*\),.*"rules_version":\([0-9]*\),.*/\1 \2/' | { read v r; test $r -ge $v; }; do sleep 0.05; done; done`,
	"sleep 0.5": `until curl -s HERE/_wlmsim/state | grep -q '"held":1'; do sleep 0.05; done`,
}

// readCurls returns the one block of the README that has curl lines, made to
// run anywhere.
func readCurls(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	var script string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
		if strings.Contains(block[1], "curl ") {
			require.Empty(t, script, "the README has two blocks with curl lines")
			script = block[1]
		}
	}
	curl := regexp.MustCompile(`(?m)^\s*curl `)
	require.Len(t, curl.FindAllString(script, -1), len(curl.FindAllString(string(readme), -1)), "the README has curl lines outside of its block")
	for pause, wait := range pauses {
		require.Regexp(t, `(?m)^`+pause+`\b`, script)
		script = regexp.MustCompile(`(?m)^`+pause+`\b.*$`).ReplaceAllLiteralString(script, wait)
	}
	require.Contains(t, script, `"service_time": "5s"`)
	return strings.NewReplacer("localhost:9200", "HERE", `"5s"`, `"10m"`).Replace(script)
}

// TestTheReadmesCurlLines runs them, in their order, in a shell against a live
// cluster and looks at what each prints.
func TestTheReadmesCurlLines(t *testing.T) {
	c := up(t)
	script := "set -eo pipefail\ntrap 'kill $(jobs -p)' EXIT\n" + readCurls(t)
	script = strings.ReplaceAll(script, "HERE", strings.TrimPrefix(c.urls[0], "http://"))
	run := command(t, "bash", "-c", script)
	run.Dir = t.TempDir()
	run.Env = append(os.Environ(), "NODES="+strings.Join(c.urls, " "), "no_proxy=*")
	out, err := run.Output()
	require.NoError(t, err, "%s\n%s", script, out)

	answers := json.NewDecoder(strings.NewReader(string(out)))
	next := func(into any) {
		t.Helper()
		require.NoError(t, answers.Decode(into), "%s", out)
	}
	var group struct {
		ID   string `json:"_id"`
		Name string
	}
	next(&group)
	require.Equal(t, "analytics", group.Name)
	var rule struct {
		WorkloadGroup string `json:"workload_group"`
	}
	next(&rule)
	require.Equal(t, group.ID, rule.WorkloadGroup)
	var refused struct {
		Status int
		Error  struct{ Type string }
	}
	next(&refused)
	require.Equal(t, 429, refused.Status)
	require.Equal(t, "rejected_execution_exception", refused.Error.Type)
	var bob int
	next(&bob)
	require.Equal(t, 200, bob)

	var stats map[string]json.RawMessage
	next(&stats)
	throttled := 0
	for id, text := range stats {
		var node struct {
			Groups map[string]struct {
				Throttled int `json:"total_throttled"`
			} `json:"workload_groups"`
		}
		if id != "_nodes" && id != "cluster_name" {
			require.NoError(t, json.Unmarshal(text, &node))
			throttled += node.Groups[group.ID].Throttled
		}
	}
	require.Equal(t, 1, throttled)
	var state struct {
		Permits map[string]struct{ Held int }
	}
	next(&state)
	require.Equal(t, 1, state.Permits[group.ID].Held)
	require.ErrorIs(t, answers.Decode(&state), io.EOF)
}
