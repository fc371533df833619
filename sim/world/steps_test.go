package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/world"
)

// holds requires that everything in a file held.
func holds(t *testing.T, r *world.Result) {
	t.Helper()
	require.Equal(t, check.Held, r.Verdict, "%+v", r.Checks)
}

// each test row is a scenario of one step kind with what must be seen of it.
func TestEveryKindOfStep(t *testing.T) {
	const late = `{name: late, resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: group, node_limit: 1}}`
	for name, text := range map[string]string{
		"a group is created, updated and deleted": `
steps:
  - {at: 1s, get_groups: {id: none, via: d1}}
  - {at: 2s, put_group: {id: made, name: g, resiliency_mode: enforced, resource_limits: {memory: 0.1}, via: d1}}
  - {at: 3s, get_groups: {id: one, via: m2}}
  - {at: 4s, put_group: {id: changed, name: g, throttling: {attribute: group, node_limit: 1}, via: m3}}
  - {at: 5s, search: {id: first, user: bob, group: g, service_time: 1s, via: d2}}
  - {at: 5s, search: {id: second, user: bob, group: g, via: d2}}
  - {at: 7s, delete_group: {id: gone, name: g, via: d3}}
  - {at: 8s, delete_group: {id: again, name: g, via: d3}}
  - {at: 8s, get_groups: {id: last, local: true, via: d1}}
  - {at: 9s, put_group: {id: anew, name: g, resiliency_mode: soft, resource_limits: {memory: 0.1}, via: leader}}
  - {at: 10s, search: {id: third, user: bob, group: g, via: d2}}
expect:
  - none.status == 200 and len(none.groups) == 0
  - made.status == 200 and one.groups == ["g"] and changed.status == 200
  - first.status == 200 and first.permit and second.status == 429
  - second.error.type == "rejected_execution_exception"
  - gone.status == 200 and again.status == 404 and len(last.groups) == 0
  - anew.status == 200 and third.status == 200 and not third.permit
  - outcomes("d2", "g").throttled == 1 and outcomes("d2").completed == 2
`,
		"a cut heals and a node restarts when steps say so": `
steps:
  - {at: 1s, partition: {sides: [[d1], rest]}}
  - {at: 1s, crash: {node: d2}}
  - {at: 59s, search: {id: down, via: d2}}
  - {at: 60s, expect: ['state("m1").members == 4']}
  - {at: 61s, restart: {node: d2}}
  - {at: 61s, restart: {node: m1}}
  - {at: 62s, heal: {}}
  - {at: 120s, expect: ['state("m1").members == 6', 'state("d1").members == 6']}
  - {at: 120s, search: {id: up, via: d2}}
expect:
  - down.status == 0 and up.status == 200
`,
		"stats, settings, rules and indices": `
users: {alice: {roles: [analyst]}}
steps:
  - {at: 1s, put_group: ` + late + `}
  - {at: 2s, put_rule: {id: rule, name: all, workload_group: late, principal.username: [alice]}}
  - {at: 10s, search: {id: first, user: alice, service_time: 1s}}
  - {at: 10s, search: {id: second, user: alice}}
  - {at: 12s, get_stats: {id: own, group: late}}
  - {at: 12s, get_stats: {id: other, group: late, via: d1}}
  - {at: 13s, delete_rule: {id: unruled, name: all}}
  - {at: 20s, search: {id: third, user: alice, service_time: 1s}}
  - {at: 20s, search: {id: fourth, user: alice}}
  - {at: 22s, put_settings: {id: set, persistent: {wlm.workload_group.mode: monitor_only}}}
  - {at: 23s, put_group: {id: refused, name: late, resource_limits: {memory: 0.2}}}
  - {at: 24s, create_index: {id: made, name: more, shards: 4, service_time: 1ms}}
  - {at: 25s, search: {id: wide, index: more}}
  - {at: 26s, delete_index: {id: gone, name: more}}
  - {at: 27s, search: {id: lost, index: more}}
expect:
  - rule.status == 200 and first.status == 200 and second.status == 429
  - own.total_throttled == 1 and other.total_throttled == 0 and other.status == 200
  - unruled.status == 200 and third.status == 200 and fourth.status == 200 and not fourth.permit
  - set.status == 200 and refused.status == 500
  - made.status == 200 and wide.status == 200 and wide.shards.total == 4 and gone.status == 200
  - lost.status == 404 and lost.error.type == "index_not_found_exception"
`,
		"a cancelled search": `
groups: [` + late + `]
steps:
  - {at: 1s, search: {id: first, user: bob, group: late, service_time: 1m}}
  - {at: 2s, expect: ['permits("m1", "late").held == 1', first.status == 0]}
  - {at: 3s, cancel: {search: first}}
  - {at: 4s, search: {id: second, user: bob, group: late}}
  - {at: 5s, search: {id: unread, user: bob, group: late, unread: true}}
expect:
  - first.status == 0 and second.status == 200 and unread.status == 0
  - outcomes("m1").cancelled == 1 and outcomes("m1").completed == 2
`,
		"the pages of a scroll": `
switches: {scroll: charged}
groups: [` + late + `]
steps:
  - {at: 1s, search: {id: first, user: bob, group: late, scroll: 1m, size: 2, via: d1}}
  - {at: 2s, search: {id: second, user: bob, group: late, page_of: first, via: d2}}
  - {at: 3s, search: {id: other, user: bob, group: late, service_time: 3s, via: d2}}
  - {at: 4s, search: {id: third, user: bob, group: late, page_of: first, via: d2}}
  - {at: 5s, search: {id: free, user: bob, page_of: first, via: d2}}
  - {at: 5s, search: {id: again, user: bob, group: late, page_of: first, via: d1}}
expect:
  - first.status == 200 and first.permit and second.status == 200 and second.permit and second.node == "d2"
  - third.status == 429 and free.status == 200 and not free.permit and again.status == 200
  - first.shards.total == again.shards.total and again.shards.successful > 0
`,
		"a point in time": `
switches: {scroll: charged}
groups: [` + late + `]
steps:
  - {at: 1s, search: {id: holder, user: bob, group: late, service_time: 5s, via: d1}}
  - {at: 2s, open_pit: {id: point, index: logs, keep_alive: 1m, via: d1}}
  - {at: 3s, search: {id: full, user: bob, group: late, pit: point, via: d1}}
  - {at: 3s, search: {id: elsewhere, user: bob, group: late, pit: point, via: d2}}
  - {at: 4s, close_pit: {id: closed, pit: point, via: d2}}
  - {at: 5s, search: {id: over, user: bob, group: late, pit: point, via: d2}}
  - {at: 6s, close_pit: {id: again, pit: point, via: m1}}
  - {at: 10s, open_pit: {id: short, keep_alive: 2s}}
  - {at: 11s, search: {id: renews, pit: short}}
  - {at: 20s, search: {id: expired, pit: short}}
expect:
  - point.status == 200 and point.successful and point.node == "d1"
  - full.status == 429 and elsewhere.status == 200 and elsewhere.permit
  - elsewhere.shards.total == holder.shards.total and elsewhere.shards.successful > 0
  - closed.status == 200 and closed.successful and again.status == 200 and again.successful
  - over.status == 404 and over.permit == false and outcomes("d2").failed == 1
  - short.successful and renews.status == 200 and expired.status == 404
`,
		"a point in time while a data node is down": `
cluster: {managers: 1, data: 2, indices: {logs: {shards: 4}}}
steps:
  - {at: 1s, crash: {node: d2, restart_after: 1m}}
  - {at: 40s, open_pit: {id: half, index: logs, keep_alive: 10m, via: d1}}
  - {at: 41s, search: {id: found, pit: half, via: d1}}
  - {at: 42s, open_pit: {id: down, keep_alive: 1m, via: d2}}
  - {at: 43s, close_pit: {id: closed, pit: half, via: m1}}
expect:
  - half.status == 200 and not half.successful
  - found.status == 200 and found.shards.total == 2 and found.shards.failed == 0
  - down.status == 0 and not down.successful
  - closed.status == 200 and closed.successful
`,
		"a multi-search": `
groups: [` + late + `]
steps:
  - {at: 1s, msearch: {id: one, searches: 3, max_concurrent: 1, user: bob, group: late, service_time: 1s}}
  - {at: 10s, msearch: {id: three, searches: 3, user: bob, group: late, index: logs, service_time: 1s, via: d1}}
  - {at: 20s, msearch: {searches: 2, user: bob}}
expect:
  - one.status == 200 and all(one.items, .status == 200 and .permit) and one.took > duration("3s")
  - three.status == 200 and count(three.items, .status == 200) == 1 and count(three.items, .status == 429) == 2
  - three.items[0].node == "d1" and three.items[2].took == three.took
  - outcomes("m1").completed == 5 and outcomes("d1").throttled == 2
`,
		"a multi-search of a node that crashes": `
steps:
  - {at: 1s, msearch: {id: lost, searches: 2, service_time: 5s, via: d1}}
  - {at: 2s, crash: {node: d1, restart_after: 5s}}
  - {at: 3s, msearch: {id: refused, searches: 2, via: d1}}
expect:
  - lost.status == 0 and len(lost.items) == 2 and lost.items[1].error.reason == "connection reset"
  - refused.status == 0 and refused.items[0].error.reason == "connection refused"
`,
		"a partition cuts a minority off": `
steps:
  - {at: 10s, partition: {sides: [[m1, d1], rest], for: 30s}}
  - {at: 25s, put_group: {id: ok, name: a, resiliency_mode: soft, resource_limits: {memory: 0.1}, via: m2}}
  - {at: 26s, expect: ['state("m1").version < state("m2").version']}
  - {at: 27s, put_group: {id: cut, name: b, resiliency_mode: soft, resource_limits: {memory: 0.1}, via: d1}}
expect:
  - ok.status == 200
  - cut.status == 200 or cut.status == 503
  - state("m1").version == state("m2").version
`,
		"an answer waits for the end of a cut": `
cluster: {data: 2}
steps:
  - {at: 1s, search: {id: cut, via: d2, service_time: 500ms}}
  - {at: 1200ms, partition: {sides: [[d2], rest], one_way: true, for: 12s}}
expect:
  - cut.status == 200 and cut.took > duration("12s") and cut.took < duration("20s")
`,
		"a request is lost with its stream over a cut": `
cluster: {data: 2, network: {latency: 100ms}}
steps:
  - {at: 1s, search: {id: cut, via: d2}}
  - {at: 1310ms, partition: {sides: [[d2], rest], one_way: true, for: 14s}}
expect:
  - cut.status == 503 and cut.shards.failed_nodes == ["d1"]
`,
		"a link gets slow one way": `
cluster: {network: {latency: 1ms}}
steps:
  - {at: 1s, search: {id: before, via: m1}}
  - {at: 2s, link: {sides: [[m1], [d1, d2, d3]], latency: 300ms, one_way: true, for: 10s}}
  - {at: 3s, search: {id: during, via: m1}}
  - {at: 20s, search: {id: after, via: m1}}
expect:
  - before.took < duration("100ms") and during.took > duration("300ms") and after.took < duration("100ms")
`,
		"a node crashes and comes back": `
steps:
  - {at: 1s, search: {id: lost, via: d2, service_time: 30s}}
  - {at: 2s, crash: {node: d2, restart_after: 10s}}
  - {at: 3s, search: {id: refused, via: d2}}
  - {at: 4s, put_group: {id: put, name: a, resiliency_mode: soft, resource_limits: {memory: 0.1}}}
  - {at: 20s, search: {id: back, via: d2}}
  - {at: 20s, expect: ['state("d2").version == state("m1").version']}
expect:
  - lost.status == 0 and lost.error.reason == "connection reset" and lost.took < duration("2s")
  - refused.status == 0 and refused.error.reason == "connection refused"
  - put.status == 200 and put.took < duration("5s")
  - back.status == 200
`,
		"a manager loses its disk": `
steps:
  - {at: 1s, put_group: {name: a, resiliency_mode: soft, resource_limits: {memory: 0.1}}}
  - {at: 2s, crash: {node: m2, disk: lost, restart_after: 5s}}
  - {at: 30s, get_groups: {id: read, local: true, via: m2}}
expect:
  - read.groups == ["a"]
`,
		"everybody crashes, one at a new address": `
steps:
  - {at: 1s, put_group: {name: a, resiliency_mode: soft, resource_limits: {memory: 0.1}}}
  - {at: 5s, crash: {node: d1, restart_after: 5s, new_address: true}}
  - {at: 20s, crash: {node: all}}
expect:
  - state("d1").version == state("m1").version
  - state("d1").members == 6
`,
		"the leader crashes half way": `
cluster: {delays: {applier.notify: 2s}}
steps:
  - {at: 10s, put_group: {id: put, name: a, resiliency_mode: soft, resource_limits: {memory: 0.1}, via: d1}}
  - {at: 11s, crash: {node: leader, restart_after: 10s}}
expect:
  - put.status == 503 and put.error.reason contains "outcome unknown"
`,
		"a node leaves and returns": `
steps:
  - {at: 1s, leave: {node: d3, return_after: 60s}}
  - {at: 60s, expect: ['state("m1").members == 5']}
  - {at: 120s, expect: ['state("m1").members == 6', 'state("d3").version == state("m1").version']}
`,
		"a node leaves for good": `
steps:
  - {at: 1s, leave: {node: leader}}
  - {at: 30s, search: {id: last, via: d1}}
expect:
  - last.status == 200
`,
		"nodes join": `
steps:
  - {at: 1s, join: {id: fourth, node: d4}}
  - {at: 1s, join: {id: taken, node: d1}}
  - {at: 2s, join: {id: manager, node: m4}}
expect:
  - fourth.status == 200 and manager.status == 200
  - taken.status == 409
  - state("m1").members == 8
`,
		"the leadership moves": `
steps:
  - {at: 5s, transfer_leadership: {to: m3}}
  - {at: 8s, expect: ['state("d1").leader == "m3"']}
  - {at: 9s, transfer_leadership: {to: m2}}
  - {at: 12s, expect: ['state("d1").leader == "m2"']}
  - {at: 13s, transfer_leadership: {}}
expect:
  - state("d1").leader != "m2"
`,
		"a disk is slow": `
steps:
  - {at: 5s, disk: {node: leader, fault: slow, by: 1s..2s, for: 10s}}
  - {at: 6s, put_group: {id: put, name: a, resiliency_mode: soft, resource_limits: {memory: 0.1}}}
expect:
  - put.status == 200 and put.took > duration("1s")
`,
		"a disk is full": `
steps:
  - {at: 5s, disk: {node: d2, fault: full, for: 20s}}
  - {at: 6s, put_group: {id: put, name: a, resiliency_mode: soft, resource_limits: {memory: 0.1}}}
  - {at: 60s, expect: ['state("d2").version == state("m1").version']}
expect:
  - put.status == 200
`,
		"listeners are slow on one node": `
steps:
  - {at: 5s, delay: {node: d1, step: applier.notify, by: 3s, for: 20s}}
  - {at: 6s, put_group: {id: put, name: a, resiliency_mode: soft, resource_limits: {memory: 0.1}}}
  - {at: 40s, put_group: {id: next, name: a, resource_limits: {memory: 0.2}}}
expect:
  - put.took > duration("3s") and next.took < duration("1s")
`,
		"gossip is starved": `
steps:
  - {at: 5s, starve_gossip: {node: d1, for: 30s}}
  - {at: 10s, search: {id: during, via: m1, timeout: 1s}}
  - {at: 90s, expect: ['state("m1").members == 6']}
  - {at: 90s, search: {id: after, via: m1}}
expect:
  - during.shards.failed_nodes == ["d1"] and after.status == 200 and after.shards.failed == 0
`,
		"clocks are wrong": `
steps:
  - {at: 1s, clock: {node: m1, offset: 8h}}
  - {at: 2s, put_group: {id: ahead, name: a, resiliency_mode: soft, resource_limits: {memory: 0.1}, via: m1}}
  - {at: 3s, clock: {node: m1, offset: -8h}}
  - {at: 4s, put_group: {id: behind, name: a, resource_limits: {memory: 0.2}, via: m1}}
expect:
  - ahead.status == 200 and behind.status == 200
`,
		"counts fail": `
groups: [` + late + `]
steps:
  - {at: 1s, search: {id: first, user: bob, group: late, service_time: 5s}}
  - {at: 2s, fail_counts: {node: m1, group: late, for: 2s}}
  - {at: 3s, search: {id: second, user: bob, group: late}}
  - {at: 5s, search: {id: third, user: bob, group: late}}
expect:
  - second.status == 429 and third.status == 429
  - stats("m1", "late").total_throttled == 1 and outcomes("m1", "late").uncounted == 1
`,
		"steps are repeated, and holds end by themselves": `
groups: [` + late + `]
steps:
  - {at: 1s, hold: {node: m1, step: datanode.answer}}
  - {at: 1s, hold: {node: d1, step: datanode.answer, count: 1}}
  - {at: 2s, repeat: {times: 3, every: 1s}, search: {user: bob, group: late, via: m1}}
expect:
  - outcomes("m1").completed + outcomes("m1").throttled == 3
  - bucket_peak("m1", "late") == 1
`,
	} {
		t.Run(name, func(t *testing.T) { holds(t, run(t, text)) })
	}
}
