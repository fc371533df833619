package check_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// windows opens every window that a flaw of a node needs. First a group is
// enforced before it has counters, then a rejection is counted while the map of
// counters is written, then users whose names have commas in them search at
// once, and a node crashes. One group is changed now and then, and read.
const windows = `version: 1
name: windows
cluster: {managers: 3, data: 2}
users:
  alice: {roles: [analyst]}
groups:
  - {name: users, resiliency_mode: enforced, resource_limits: {cpu: 0.3}, throttling: {attribute: username, node_limit: 1}}
load:
  - {name: some, user: alice, group: users, via: all, arrive: {poisson: 20/s}, from: 0s, for: 30s}
steps:
  - at: 5s
    hold: {node: d2, step: applier.published}
  - at: 5s
    put_group: {name: late, resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: group, node_limit: 1}}
  - {at: 6s, search: {id: a1, user: bob, group: late, via: d2, service_time: 8s}}
  - {at: 6s, search: {id: a2, user: bob, group: late, via: d2}}
  - {at: 7s, release: {node: d2, step: applier.published}}
  - {at: 8s, hold: {node: d2, step: wlm.map_write_begin}}
  - {at: 8s, put_group: {name: more, resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: group, node_limit: 1}}}
  - {at: 9s, search: {id: b1, user: bob, group: late, via: d2}}
  - {at: 10s, release: {node: d2, step: wlm.map_write_begin}}
  - {at: 12s, search: {id: c1, user: carol, group: users, via: d1, service_time: 1s}}
  - {at: 12s, search: {id: c2, user: "carol,x", group: users, via: d1, service_time: 1s}}
  - {at: 14s, put_group: {name: late, throttling: {node_limit: 2}}}
  - {at: 15s, get_groups: {id: seen, via: d1}}
  - {at: 16s, delete_group: {name: late}}
  - {at: 17s, get_groups: {id: gone, via: m2}}
  - {at: 20s, crash: {node: m1, restart_after: 5s}}
`

// broken runs the file with some switches and returns the promises that break,
// each with its message. All others must be held.
func broken(t *testing.T, switches map[string]string) map[string]string {
	t.Helper()
	f, err := scenario.Parse("windows.yaml", []byte(windows))
	require.NoError(t, err)
	f.Switches = switches
	r, err := world.Run(f, world.Options{Path: "windows.yaml"})
	require.NoError(t, err)
	found := map[string]string{}
	for _, c := range r.Checks {
		require.NotEqual(t, check.Undecided, c.Verdict, "%s: %s", c.Name, c.Message)
		if c.Verdict == check.Broken {
			found[c.Name] = c.Message
		}
	}
	return found
}

// Each flaw that can be planted in a real node breaks the promise that it is
// about, and no other.
func TestEveryFlawOfANodeBreaksItsPromiseAlone(t *testing.T) {
	for _, c := range []struct {
		flaw     map[string]string
		promise  scenario.Promise
		sentence string
	}{
		{nil, "", ""},
		{map[string]string{"acquire": "rollback"}, "", ""},
		{map[string]string{"counters": "plain"}, "", ""},
		{map[string]string{"missing_counters": "default_group"}, scenario.RejectionAttribution, "a rejection was counted on another group than its own: "},
		{map[string]string{"counters": "plain", "count_failure": "swallows_rejection"}, scenario.RejectionKept, "a search that found its bucket full was run all the same: "},
		{map[string]string{"principal_carrier": "header"}, scenario.PrincipalStays, "a principal's canary was sent from one node to another: "},
		{map[string]string{"principal_join": "comma"}, scenario.BucketsDistinct, "two principals share a bucket: "},
	} {
		name := []string{"switches"}
		for _, key := range []string{"acquire", "counters", "missing_counters", "count_failure", "principal_carrier", "principal_join"} {
			if c.flaw[key] != "" {
				name = append(name, key+"="+c.flaw[key])
			}
		}
		t.Run(strings.Join(name, " "), func(t *testing.T) {
			found := broken(t, c.flaw)
			if c.promise == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1, "%v", found)
			require.True(t, strings.HasPrefix(found[string(c.promise)], c.sentence), "%v", found)
		})
	}
}
