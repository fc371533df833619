package shipped_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/wlm"
)

// actions are what a drawn actor may do: each kind of request that can be
// explored, on the two groups and two indices that a drawn file has. %s is the
// id of the request.
var actions = []string{
	"{search: {id: %s, user: bob, group: a}}",
	"{search: {id: %s, user: bob, group: a, hold: true}}",
	"{search: {id: %s, user: eve, group: a}}",
	"{search: {id: %s, user: bob, group: b, index: logs}}",
	"{search: {id: %s, user: bob, group: a, index: logs, lookups: [terms]}}",
	"{search: {id: %s, user: eve}}",
	"{put_group: {id: %s, name: a, throttling: {attribute: group, node_limit: 1}}}",
	"{put_group: {id: %s, name: a, throttling: {attribute: role, node_limit: 2}}}",
	"{put_group: {id: %s, name: a, throttling: {attribute: username, node_limit: 1}}}",
	"{put_group: {id: %s, name: a, resiliency_mode: monitor}}",
	"{put_group: {id: %s, name: b, " + throttledB + "}}",
	"{delete_group: {id: %s, name: a}}",
	"{delete_group: {id: %s, name: b}}",
	"{put_settings: {id: %s, persistent: {wlm.workload_group.mode: monitor_only}}}",
	"{put_settings: {id: %s, persistent: {wlm.workload_group.mode: enabled}}}",
	"{get_stats: {id: %s, group: a}}",
	"{get_stats: {id: %s, group: b}}",
	"{get_stats: {id: %s, group: DEFAULT_WORKLOAD_GROUP}}",
	"{get_groups: {id: %s}}",
	"{get_groups: {id: %s, local: true}}",
	"{delete_index: {id: %s, name: logs}}",
	"{create_index: {id: %s, name: more, shards: 2}}",
	"{put_rule: {id: %s, name: r, workload_group: a, principal.username: [eve]}}",
	"{delete_rule: {id: %s, name: known}}",
}

const throttledB = "resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: group, node_limit: 1}"

const drawnHead = `version: 1
name: drawn
users: {bob: {roles: [analyst, reader]}, eve: {roles: [reader]}}
cluster: {indices: {logs: {shards: 1}, terms: {shards: 1}}}
groups:
  - {name: a, resiliency_mode: enforced, resource_limits: {cpu: 0.1}, throttling: {attribute: username, node_limit: 1}}
%srules:
  - {name: known, workload_group: a, principal.username: [eve]}
explore:
  node: m1
  before: [{put_group: {name: c, resiliency_mode: enforced, resource_limits: {cpu: 0.1}}}]
`

// drawnRace draws a file of two or three actors, and what all of them see and
// leave behind.
func drawnRace(t *rapid.T) string {
	var b, observe strings.Builder
	late := rapid.Bool().Draw(t, "late")
	if late {
		fmt.Fprintf(&b, drawnHead, "")
		b.WriteString("  actors:\n    maker: [{put_group: {name: b, " + throttledB + "}}]\n")
	} else {
		fmt.Fprintf(&b, drawnHead, "  - {name: b, "+throttledB+"}\n")
		b.WriteString("  actors:\n")
	}
	observe.WriteString("  observe:\n")
	see := func(name, expression string) { fmt.Fprintf(&observe, "    %s: '%s'\n", name, expression) }
	most := 3
	if late {
		most = 2
	}
	for i := range rapid.IntRange(2, most).Draw(t, "actors") {
		var lines []string
		for k := range rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "actions") {
			id := fmt.Sprintf("r%d%d", i, k)
			text := rapid.SampledFrom(actions).Draw(t, "action")
			lines = append(lines, fmt.Sprintf(text, id))
			see(id, id+".status")
			switch {
			case strings.Contains(text, "search"):
				see(id+"p", id+".permit")
			case strings.Contains(text, "get_stats"):
				see(id+"t", id+".total_throttled")
				see(id+"c", id+".total_completions")
			case strings.Contains(text, "get_groups"):
				see(id+"g", "len("+id+".groups)")
			}
			if strings.Contains(text, "hold") {
				break
			}
		}
		fmt.Fprintf(&b, "    actor%d: [%s]\n", i, strings.Join(lines, ", "))
	}
	if rapid.Bool().Draw(t, "leave") && strings.Contains(b.String(), "search: {id: r00,") {
		b.WriteString("    leaver: [{cancel: {search: r00}}]\n")
	}
	for _, group := range []string{"a", "b"} {
		see("t"+group, `stats("`+group+`").total_throttled`)
		see("c"+group, `stats("`+group+`").total_completions`)
		see("h"+group, `permits("m1", "`+group+`").buckets`)
		see("p"+group, `bucket_peak("m1", "`+group+`")`)
	}
	see("td", `stats("DEFAULT_WORKLOAD_GROUP").total_throttled`)
	see("cd", `stats("DEFAULT_WORKLOAD_GROUP").total_completions`)
	see("u", `outcomes("m1").uncounted`)
	see("x", `outcomes("m1").cancelled`)
	see("f", `outcomes("m1").failed`)
	return b.String() + observe.String()
}

// lostNothing holds the reduced orders of a race against all of them, or
// against so many and as many random ones. It returns how many orders there
// are after reduction; 0: more than that.
func lostNothing(t require.TestingT, text, profile string, orders int) int {
	run := func(o explore.Options) *explore.Result {
		f, err := scenario.Parse("drawn.yaml", []byte(text))
		require.NoError(t, err)
		o.Profile = profile
		r, err := explore.Run(f, o)
		require.NoError(t, err)
		for _, c := range r.Checks {
			require.NotEqual(t, check.Undecided, c.Verdict, c.Message)
		}
		return r
	}
	reduced := run(explore.Options{Schedules: orders})
	if !reduced.Complete {
		return 0
	}
	full := run(explore.Options{NoReduction: true, Schedules: orders})
	require.Empty(t, lost(shownBy(reduced), shownBy(full)), text)
	if full.Complete {
		require.Empty(t, lost(shownBy(full), shownBy(reduced)), text)
		return reduced.Schedules
	}
	random := run(explore.Options{Strategy: explore.Random, Schedules: orders})
	require.Empty(t, lost(shownBy(reduced), shownBy(random)), text)
	return reduced.Schedules
}

// Orders that are left out lose nothing of races that nobody wrote either.
func TestDrawnRacesLoseNothing(t *testing.T) {
	orders := 40
	if os.Getenv("WLMSIM_SOAK") != "" {
		orders = 20_000
	}
	rapid.Check(t, func(t *rapid.T) {
		lostNothing(t, drawnRace(t), rapid.SampledFrom(wlm.Profiles()).Draw(t, "profile"), orders)
	})
}

// A drawn race that once lost outcomes: a search reaches the data node after
// the one that it started, while its index is deleted.
func TestARaceThatLostOutcomesLosesNone(t *testing.T) {
	const actors = `  actors:
    search: [{search: {id: one, user: bob, group: a, index: logs, lookups: [terms]}}]
    drop:   [{get_stats: {id: seen, group: a}}, {delete_index: {name: logs}}]
  observe: {one: one.status, seen: seen.total_completions}
`
	require.NotZero(t, lostNothing(t, fmt.Sprintf(drawnHead, "")+actors, wlm.ProfileUpstream, 1_000))
}
