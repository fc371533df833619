package scenario_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

// Promise 5: a value that is set is as if it were written in the file.
func TestSetIsAsIfWritten(t *testing.T) {
	design := read(t, "testdata/design.yaml")
	for _, test := range []struct{ set, old, written string }{
		{"groups.analytics.throttling.node_limit=5", "node_limit: 10", "node_limit: 5"},
		{"seed=8", "seed: 7", "seed: 8"},
		{"cluster.data=5", "data: 4", "data: 5"},
		{"cluster.settings.wlm.workload_group.mode=disabled", "mode: enabled", "mode: disabled"},
		{"cluster.indices.logs.shards=7", "shards: 6", "shards: 7"},
		{"cluster.indices.logs.service_time=20ms", "{lognormal: {p50: 20ms, p99: 120ms}}", "20ms"},
		{"cluster.indices.logs.service_time.lognormal.p99=1s", "p99: 120ms", "p99: 1s"},
		{"users.alice.roles=[admin, analyst]", "alice: {roles: [analyst]}", "alice: {roles: [admin, analyst]}"},
		{"rules.1.principal.role=[admin]", "principal.role: [analyst]", "principal.role: [admin]"},
		{"load.nightly.via={m1: 1, m2: 2}", "via: [m1]", "via: {m1: 1, m2: 2}"},
		{"load.dashboards.retry.backoff.jitter=none", "jitter: full", "jitter: none"},
		{"load.dashboards.arrive.poisson=300/s", "poisson: 200/s", "poisson: 300/s"},
		{"steps.one.search.service_time=6s", "service_time: 5s", "service_time: 6s"},
		{"steps.6.partition.for=21s", "rest], for: 20s", "rest], for: 21s"},
		{"expect=['two.status == 200']", "  - two.status == 429\n  - stats(\"d2\", \"DEFAULT_WORKLOAD_GROUP\").total_throttled == 0\n  - load.dashboards.throttled_share < 0.5\n", "  - two.status == 200\n"},
		{"under.submitted.breaks=[settles]", "breaks: [principal_stays, rejection_attribution]", "breaks: [settles]"},
		{"name=\"a: b\"", "name: A stale counter map never charges the default group", "name: 'a: b'"},
	} {
		require.Contains(t, design, test.old)
		want := parse(t, strings.Replace(design, test.old, test.written, 1))
		got, err := parse(t, design).Set(test.set)
		require.NoError(t, err, test.set)
		require.Equal(t, string(scenario.Print(want)), string(scenario.Print(got)), test.set)
		require.True(t, scenario.Equal(want, got), test.set)
	}
}

func TestSetMakesWhatIsNotThereYet(t *testing.T) {
	f := parse(t, base, "switches.counters=plain", "load=[{name: a, arrive: {closed: 1}, for: 1s}]", "load.a.retry={on: [429], attempts: 2}", "load.a.retry.backoff.initial=1s", "cluster.delays.wlm.counted=0..2ms")
	require.Equal(t, map[string]string{"counters": "plain"}, f.Switches)
	require.Equal(t, "1s", f.Load[0].Retry.Backoff.Initial.String())
	require.Contains(t, string(scenario.Print(f)), "delays: {wlm.counted: 0s..2ms}")
}

// A second Set keeps what the first one set, and neither changes its file.
func TestSetReturnsAnotherFile(t *testing.T) {
	f := parse(t, base)
	one, err := f.Set("cluster.data=4")
	require.NoError(t, err)
	two, err := one.Set("seed=3")
	require.NoError(t, err)
	require.Equal(t, []int{2, 4, 4}, []int{f.Cluster.Data, one.Cluster.Data, two.Cluster.Data})
	require.Equal(t, []uint64{0, 0, 3}, []uint64{f.Seed, one.Seed, two.Seed})

	built := &scenario.File{Version: 1, Name: "built in Go", Steps: []scenario.Step{{Action: scenario.Action{Search: &scenario.Search{}}}}}
	set, err := built.Set("steps.1.search.user=bob")
	require.NoError(t, err)
	require.Equal(t, "bob", set.Steps[0].Search.User)
	require.Empty(t, built.Steps[0].Search.User)
}

// A file that was changed since it was parsed is checked and set as it is now.
func TestSetSeesWhatChangedInGo(t *testing.T) {
	f := parse(t, read(t, "testdata/design.yaml"))
	set, err := f.For("submitted").Set("seed=9")
	require.NoError(t, err)
	require.Equal(t, "submitted", set.Profile)
	require.Equal(t, uint64(9), set.Seed)

	f.Steps = f.Steps[:0]
	_, err = f.Set()
	require.ErrorContains(t, err, `unknown name "two"`)
	f.Expect, f.Under = nil, nil
	set, err = f.Set()
	require.NoError(t, err)
	require.Empty(t, set.Steps)
}

// Promise 5: the faults of an assignment, in the place and words of it.
func TestFaultsOfSet(t *testing.T) {
	f := parse(t, read(t, "testdata/design.yaml"))
	explored := parse(t, read(t, "testdata/explore.yaml"))
	for _, test := range []struct {
		file      *scenario.File
		set, want string
	}{
		{f, "groups.analytics.throttling.node_limit=0", "--set:1:40: node_limit 0 is out of bounds: 1 to 2147483647\n    groups.analytics.throttling.node_limit=0\n"},
		{f, "groups.analytic.throttling.node_limit=5", `--set:1:1: unknown name in groups "analytic": did you mean "analytics"?, or a number from 1 to 1`},
		{f, "groups.2.name=x", `unknown name in groups "2": one of analytics, or a number from 1 to 1`},
		{f, "clutser.data=5", `unknown key "clutser": did you mean "cluster"?`},
		{f, "users.bob.roles=[x]", `unknown name in users "bob": one of alice`},
		{f, "load.nightly.via.m1=1", `unknown key "m1"`},
		{f, "users.alice.roles.1=x", `roles is a list without names: set it as a whole, like users.alice.roles=[a, b]`},
		{f, "seed.x=1", `seed is a single value and has no "x"`},
		{f, "load.nightly.for.x=1s", `for is a single value and has no "x"`},
		{f, "seed", `"seed" is no assignment: write PATH=VALUE on one line`},
		{f, "=5", `"=5" is no assignment`},
		{f, "seed=", `--set:1:6: there is nothing in it`},
		{f, "seed=[", `sequence end token ']' not found`},
		{f, "switches.counters=plane", `--set:1:19: unknown value of counters "plane": one of safe, plain`},
		{f, "steps.one.search.id=two", `id "two" is used twice`},
		{f, "steps.two.search.id=three", `design.yaml:40:5: unknown name "two"`},
		{f, "expect=[two.statos == 1]", `--set:1:13: unknown field "statos": did you mean "status"?`},
		{explored, "explore.actors.frist.1.search.user=x", `unknown name in actors "frist": did you mean "first"?`},
		{explored, "explore.actors.first.first.search.service_time=-1s", `--set:1:48: service_time: time -1s is negative`},
	} {
		got, err := test.file.Set(test.set)
		require.IsType(t, scenario.Faults{}, err, test.set)
		require.Nil(t, got)
		require.Contains(t, strings.ReplaceAll(err.Error(), "file.yaml", "design.yaml"), test.want, test.set)
	}
}
