package world_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// chaos writes a scenario of random faults, writes and searches under load.
func chaos(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 0))
	nodes := []string{"m1", "m2", "m3", "d1", "d2", "d3"}
	node := func() string { return nodes[r.IntN(len(nodes))] }
	seconds := func(most int) string { return fmt.Sprintf("%dms", 1+r.IntN(most*1000)) }
	group := func() string { return []string{"a", "b", "c"}[r.IntN(3)] }
	actions := []func() string{
		func() string {
			return fmt.Sprintf("put_group: {name: %s, resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: %s, node_limit: %d}, via: %s}",
				group(), []string{"group", "username", "role"}[r.IntN(3)], 1+r.IntN(3), node())
		},
		func() string {
			return fmt.Sprintf("put_group: {name: %s, resiliency_mode: soft, resource_limits: {memory: 0.2}, via: %s}", group(), node())
		},
		func() string { return fmt.Sprintf("delete_group: {name: %s, via: %s}", group(), node()) },
		func() string { return fmt.Sprintf("get_groups: {via: %s}", node()) },
		func() string {
			return fmt.Sprintf("search: {user: bob, group: %s, via: %s, service_time: %s}", group(), node(), seconds(5))
		},
		func() string {
			return fmt.Sprintf("crash: {node: %s, restart_after: %s, new_address: %t}", node(), seconds(20), r.IntN(3) == 0)
		},
		func() string {
			return fmt.Sprintf("crash: {node: %s, disk: lost, restart_after: %s}", node(), seconds(20))
		},
		func() string {
			return fmt.Sprintf("partition: {sides: [[%s], rest], one_way: %t, for: %s}", node(), r.IntN(2) == 0, seconds(30))
		},
		func() string {
			return fmt.Sprintf("link: {sides: [[%s], rest], latency: 1ms..2s, loss: 0.3, for: %s}", node(), seconds(20))
		},
		func() string {
			return fmt.Sprintf("disk: {node: %s, fault: slow, by: 0s..300ms, for: %s}", node(), seconds(20))
		},
		func() string { return fmt.Sprintf("disk: {node: %s, fault: full, for: %s}", node(), seconds(10)) },
		func() string {
			return fmt.Sprintf("delay: {node: %s, step: applier.notify, by: 0s..2s, for: %s}", node(), seconds(20))
		},
		func() string { return fmt.Sprintf("starve_gossip: {node: %s, for: %s}", node(), seconds(15)) },
		func() string { return "transfer_leadership: {}" },
		func() string { return fmt.Sprintf("fail_counts: {node: %s, for: %s}", node(), seconds(20)) },
	}
	var b strings.Builder
	b.WriteString(`
cluster: {indices: {logs: {shards: 3, service_time: {exponential: {mean: 30ms}}}}, delays: {wlm.acquire_begin: 0s..2ms, datanode.answer: 0s..2ms}}
users: {alice: {roles: [analyst]}}
groups:
  - {name: a, resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: username, node_limit: 2}}
  - {name: b, resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: role, node_limit: 2}}
  - {name: c, resiliency_mode: soft, resource_limits: {memory: 0.1}}
rules:
  - {workload_group: a, principal.role: [analyst]}
load:
  - {name: ruled, user: alice, arrive: {poisson: 100/s}, for: 1m, retry: {on: [429, 503], attempts: 3, backoff: {initial: 50ms, factor: 2, jitter: full}}}
  - {name: sent, user: bob, group: b, via: random, arrive: {closed: 10, think: 100ms}, for: 1m, cancel_after: 2s}
steps:
`)
	for range 15 {
		fmt.Fprintf(&b, "  - {at: %dms, %s}\n", r.IntN(60_000), actions[r.IntN(len(actions))]())
	}
	return b.String()
}

// TestRandomFaultsBreakNoPromise runs random scenarios; each must settle, leave
// nothing behind, and keep every promise.
func TestRandomFaultsBreakNoPromise(t *testing.T) {
	rounds := uint64(2)
	if os.Getenv("WLMSIM_SOAK") != "" {
		rounds = 500
	}
	for seed := range rounds {
		text := "version: 1\nname: chaos\n" + chaos(seed)
		f, err := scenario.Parse("chaos.yaml", []byte(text))
		require.NoError(t, err)
		r, err := world.Run(f, world.Options{Seed: &seed})
		require.NoError(t, err, "seed %d:\n%s", seed, text)
		for _, c := range r.Checks {
			require.Equal(t, check.Held, c.Verdict, "seed %d, %+v:\n%s", seed, c, text)
		}
	}
}
