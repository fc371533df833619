package world_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

func plan(t *testing.T, load string, seed uint64) *world.Plan {
	t.Helper()
	f, err := scenario.Parse("plan.yaml", []byte(`version: 1
name: a plan
cluster: {managers: 1, data: 2, indices: {logs: {}}}
users: {alice: {roles: [analyst, ops]}}
load: [{name: l, user: alice, index: logs, `+load+`}]
`))
	require.NoError(t, err)
	f = f.Filled()
	return world.NewPlan(f, &f.Load[0], seed)
}

func all(p *world.Plan) (searches []world.Planned) {
	for s, more := p.Next(); more; s, more = p.Next() {
		searches = append(searches, s)
	}
	return searches
}

func TestAPlanIsALoadAsDecisions(t *testing.T) {
	p := plan(t, "arrive: {constant: 10/s}, for: 1s, via: [d2, m1], retry: {on: [429], attempts: 3, backoff: {initial: 100ms, factor: 2}}", 1)
	searches := all(p)
	require.Len(t, searches, 10)
	require.Equal(t, world.Planned{
		Number: 3, At: 300 * time.Millisecond, User: "alice", Roles: []string{"analyst", "ops"}, Index: "logs", ServiceTime: -1,
	}, searches[3])
	require.Equal(t, []string{"d2", "m1", "d2", "m1"}, []string{p.Node(0, 1), p.Node(0, 2), p.Node(0, 3), p.Node(1, 1)})
	require.True(t, p.Again(429, 2))
	require.False(t, p.Again(429, 3), "no attempt is left")
	require.False(t, p.Again(503, 1), "the status is not listed")
	require.Equal(t, []time.Duration{100 * time.Millisecond, 200 * time.Millisecond}, []time.Duration{p.Wait(0, 1), p.Wait(0, 2)})
	require.False(t, plan(t, "arrive: {constant: 1/s}, for: 1s", 1).Again(429, 1), "there is no retry")
}

func TestAPlanFollowsFromTheSeed(t *testing.T) {
	const load = "arrive: {poisson: 100/s}, for: 2s, via: random, service_time: {exponential: {mean: 50ms}}"
	first := all(plan(t, load, 1))
	require.NotEmpty(t, first)
	require.Equal(t, first, all(plan(t, load, 1)))
	require.NotEqual(t, first, all(plan(t, load, 2)))
}

// A distribution that a load brings along is for each shard to draw from.
func TestAPlanHandsOutItsServiceTime(t *testing.T) {
	for text, want := range map[string]world.Planned{
		"":                    {ServiceTime: -1},
		", service_time: 5ms": {ServiceTime: 5 * time.Millisecond},
		", service_time: {exponential: {mean: 50ms}}": {ServiceTime: -1, Service: cluster.ServiceTime{Distribution: cluster.Exponential, Mean: 50 * time.Millisecond}},
	} {
		s := all(plan(t, "arrive: {constant: 1/s}, for: 1s"+text, 1))[0]
		require.Equal(t, want.ServiceTime, s.ServiceTime, text)
		require.Equal(t, want.Service, s.Service, text)
	}
}

func TestClientsOfAClosedPlanShareNoSearch(t *testing.T) {
	p := plan(t, "arrive: {closed: 3}, for: 1s", 1)
	seen := map[uint64]bool{}
	for client := range uint64(3) {
		for n := range uint64(4) {
			number := p.OfClient(client, n).Number
			require.False(t, seen[number])
			seen[number] = true
		}
	}
}

func TestNodeNames(t *testing.T) {
	f, err := scenario.Parse("plan.yaml", []byte("version: 1\nname: a plan\ncluster: {managers: 2, data: 3}\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"m1", "m2", "d1", "d2", "d3"}, world.NodeNames(f.Filled()))
}
