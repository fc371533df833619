package scenario_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func parse(t *testing.T, text string, set ...string) *scenario.File {
	t.Helper()
	f, err := scenario.Parse("file.yaml", []byte(text), set...)
	require.NoError(t, err)
	return f
}

// golden compares a text with a file, or rewrites the file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	require.Equal(t, read(t, path), got)
}

// The two examples that the format was designed with.
func TestTheExamplesOfTheDesignParse(t *testing.T) {
	f := parse(t, read(t, "testdata/design.yaml"))
	golden(t, "testdata/design.golden", string(scenario.Print(f)))
	require.Equal(t, scenario.Duration(5*time.Second), f.Steps[2].Search.ServiceTime.Fixed)
	require.Equal(t, 200.0, f.Load[0].Arrive.Poisson.PerSecond())
	require.Equal(t, []string{"analyst"}, f.Users["alice"].Roles)
	require.Equal(t, []scenario.Side{{Nodes: []string{"m1"}}, {Word: scenario.Rest}}, f.Steps[5].Partition.Sides)

	f = parse(t, read(t, "testdata/explore.yaml"))
	golden(t, "testdata/explore.golden", string(scenario.Print(f)))
	require.Equal(t, []string{"update", "first", "second"}, names(f.Explore.Actors), "lanes keep the order of the file")
	require.Equal(t, []string{"second", "group", "default"}, names(f.Explore.Observe))
	require.True(t, f.Explore.Actors[1].Value[0].Search.Hold)
}

func names[T any](entries scenario.Ordered[T]) []string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Name)
	}
	return all
}

// Promise 2: one reading reports all faults of a file.
func TestAllFaultsOfAFileAtOnce(t *testing.T) {
	_, err := scenario.Parse("faults.yaml", []byte(read(t, "testdata/faults.yaml")))
	require.IsType(t, scenario.Faults{}, err)
	golden(t, "testdata/faults.golden", err.Error()+"\n")
}

// base is a sound file that faults are put into.
const base = `version: 1
name: base
cluster: {managers: 3, data: 2, indices: {logs: {shards: 2}}}
groups:
  - {name: analytics, resiliency_mode: enforced, resource_limits: {cpu: 0.3}, throttling: {attribute: username, node_limit: 2}}
`

func TestTheBaseOfTheFaultsIsSound(t *testing.T) { parse(t, base) }

// Promise 2: each fault, alone, with the place and the words of it. A place is
// given by line and column within the text that is added.
func TestFaults(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"unknown key", "stepz: []", `1:1: unknown key "stepz": did you mean "steps"?`},
		{"unknown key without a near one", "frobnicate: 1", `1:1: unknown key "frobnicate": one of version, name, about`},
		{"duplicate key", "seed: 1\nseed: 2", `2:1: duplicate key "seed"`},
		{"mapping for a list", "steps: {at: 1s}", `1:8: steps must be a list but is a mapping`},
		{"list for a mapping", "users: [a]", `1:8: users must be a mapping but is a list`},
		{"text for a number", `seed: "1"`, `1:7: seed must be a number but is text`},
		{"number for text", "about: 1.5", `1:8: about must be text but 1.5 is a number: write "1.5"`},
		{"truth for text", "about: true", `1:8: about must be text but true is true or false: write "true"`},
		{"text for truth", "load: [{name: a, arrive: {closed: 1}, for: 1s, allow_partial: 'yes'}]", `1:63: allow_partial must be true or false but is text`},
		{"list for a time", "steps: [{at: [1s], expect: ['true']}]", `1:14: at must be a single value but is a list`},
		{"nothing", "about:", `1:7: about has no value: give it one or leave it out`},
		{"fraction for a whole number", "seed: 1.5", `1:7: seed 1.5 is not a number that it can be: whole, 0 or more`},
		{"number in another base", "seed: 0x10", `1:7: seed must be a number in decimal digits but is 0x10`},
		{"negative time", "steps: [{at: -1s, expect: ['true']}]", `1:14: at: time -1s is negative`},
		{"time without unit", "steps: [{at: 5, expect: ['true']}]", `1:14: at: time 5 lacks a unit: ns, us, ms, s, m or h`},
		{"no time", "steps: [{at: soon, expect: ['true']}]", `1:14: at: "soon" is no time: write one like 250ms, 1m30s or 2h`},
		{"time out of bounds", "steps: [{at: 9000h, expect: ['true']}]", `1:14: at: time 9000h is out of bounds: at most 8760h`},
		{"step without time", "steps: [{expect: ['true']}]", `1:9: item 1 of steps lacks "at"`},
		{"no action", "steps: [{at: 1s}]", `1:9: 0 actions in one step: give one of hold, release`},
		{"two actions", "steps: [{at: 1s, search: {}, expect: ['true']}]", `1:9: 2 actions in one step: give one of hold`},
		{"unknown group", "steps: [{at: 1s, search: {group: analytic}}]", `1:34: unknown group "analytic": did you mean "analytics"?`},
		{"unknown group of a rule", "rules: [{workload_group: x, principal.role: [r]}]", `1:26: unknown group "x": one of analytics`},
		{"unknown node", "steps: [{at: 1s, search: {via: m7}}]", `1:32: unknown node "m7": one of m1, m2, m3, d1, d2, leader`},
		{"unknown step", "steps: [{at: 1s, hold: {node: m1, step: applier.publish}}]", `1:41: unknown step "applier.publish": did you mean "applier.published"?`},
		{"unknown promise under a profile", "under: {submitted: {breaks: [settle]}}", `1:30: unknown promise "settle": did you mean "settles"?`},
		{"unknown index", "steps: [{at: 1s, search: {index: lgos}}]", `1:34: unknown index "lgos": did you mean "logs"?`},
		{"unknown promise", "breaks: [setles]", `1:10: unknown promise "setles": did you mean "settles"?`},
		{"promise twice", "breaks: [settles, settles]", `1:19: promise settles is named twice`},
		{"unknown switch", "switches: {counter: plain}", `1:21: unknown switch "counter": did you mean "counters"?`},
		{"unknown value of a switch", "switches: {counters: plaim}", `1:22: unknown value of counters "plaim": did you mean "plain"?`},
		{"unknown profile", "profile: submited", `1:10: unknown profile "submited": did you mean "submitted"?`},
		{"unknown profile under", "under: {subm: {breaks: [settles]}}", `1:9: unknown profile "subm": one of reviewed, submitted`},
		{"outcomes of nothing under a profile", "under: {submitted: {forbid: ['true']}}", `1:29: there is no explore: block whose outcomes it could judge`},
		{"unknown value under a profile", "explore: {node: m1, actors: {a: [{search: {id: s}}]}, observe: {v: s.status}}\nunder: {submitted: {require: [w == 200]}}", `2:31: unknown name "w": one of v`},
		{"expect of an exploration under a profile", "explore: {node: m1, actors: {a: [{search: {id: s}}]}, observe: {v: s.status}}\nunder: {submitted: {expect: ['true']}}", `2:29: nothing runs but the exploration`},
		{"own profile under", "under: {reviewed: {breaks: [settles]}}", `1:9: reviewed is the profile that the file itself is for`},
		{"release of nothing", "steps: [{at: 1s, release: {node: d1, step: applier.published}}]", `1:27: no earlier step holds applier.published of d1`},
		{"release before its hold", "steps:\n  - {at: 2s, hold: {node: d1, step: wlm.counted}}\n  - {at: 1s, release: {node: d1, step: wlm.counted}}", `3:23: no earlier step holds wlm.counted of d1`},
		{"held twice", "steps:\n  - {at: 1s, hold: {node: d1, step: wlm.counted}}\n  - {at: 2s, hold: {node: d1, step: wlm.counted}}", `3:20: wlm.counted of d1 is held already: release it first`},
		{"search of a hold", "steps: [{at: 1s, hold: {node: d1, step: wlm.counted, search: nobody}}]", `1:62: unknown search "nobody": the file has none`},
		{"id twice", "steps: [{at: 1s, search: {id: a}}, {at: 2s, get_groups: {id: a}}]", `1:62: id "a" is used twice`},
		{"id that is no name", "steps: [{at: 1s, search: {id: a-b}}]", `1:31: the id "a-b" cannot be named in expressions`},
		{"id that is taken", "steps: [{at: 1s, search: {id: load}}]", `1:31: the id "load" has a name that expressions use for something else`},
		{"unknown search to cancel", "steps: [{at: 1s, search: {id: long}}, {at: 2s, cancel: {search: lomg}}]", `1:65: unknown search "lomg": did you mean "long"?`},
		{"page of a search without scroll", "steps: [{at: 1s, search: {id: one}}, {at: 2s, search: {page_of: one}}]", `1:65: unknown earlier search with scroll "one": the file has none`},
		{"page of a later search", "steps: [{at: 1s, search: {page_of: one}}, {at: 2s, search: {id: one, scroll: 1m}}]", `1:36: unknown earlier search with scroll "one": the file has none`},
		{"page with an index", "steps: [{at: 1s, search: {id: one, scroll: 1m}}, {at: 2s, search: {page_of: one, index: logs}}]", `1:89: a page has its index from the search with scroll: leave it out`},
		{"scroll without a name", "steps: [{at: 1s, search: {scroll: 1m}}]", `1:26: a search with scroll lacks "id"`},
		{"explored page", "explore: {actors: {a: [{search: {id: s, scroll: 1m}}]}, observe: {v: '1'}}", `1:33: the pages of a scroll belong to steps`},
		{"search of no point in time", "steps: [{at: 1s, search: {pit: one}}]", `1:32: unknown earlier open_pit "one": the file has none`},
		{"search of a later point in time", "steps: [{at: 1s, search: {pit: one}}, {at: 2s, open_pit: {id: one, keep_alive: 1m}}]", `1:32: unknown earlier open_pit "one": the file has none`},
		{"index of a point in time", "steps: [{at: 1s, open_pit: {id: one, keep_alive: 1m}}, {at: 2s, search: {pit: one, index: logs}}]", `1:91: a search of a point in time has no index: leave it out`},
		{"scroll of a point in time", "steps: [{at: 1s, open_pit: {id: one, keep_alive: 1m}}, {at: 2s, search: {id: s, pit: one, scroll: 1m}}]", `1:99: a search of a point in time has no scroll: leave it out`},
		{"point in time without a name", "steps: [{at: 1s, open_pit: {keep_alive: 1m}}]", `1:28: open_pit lacks "id", which searches and close_pit name it by`},
		{"point in time without a time", "steps: [{at: 1s, open_pit: {id: one}}]", `1:28: open_pit lacks "keep_alive"`},
		{"point in time of 0s", "steps: [{at: 1s, open_pit: {id: one, keep_alive: 0s}}]", `1:50: a point in time that is kept for 0s is gone at once`},
		{"point in time of an unknown index", "steps: [{at: 1s, open_pit: {id: one, index: lgos, keep_alive: 1m}}]", `1:45: unknown index "lgos"`},
		{"end of no point in time", "steps: [{at: 1s, open_pit: {id: one, keep_alive: 1m}}, {at: 2s, close_pit: {pit: onw}}]", `1:82: unknown earlier open_pit "onw": did you mean "one"?`},
		{"repeated point in time", "steps: [{at: 1s, repeat: {times: 2, every: 1s}, open_pit: {id: one, keep_alive: 1m}}]", `1:26: open_pit cannot be repeated`},
		{"explored end of a point in time", "explore: {actors: {a: [{close_pit: {pit: one}}]}, observe: {v: '1'}}", `1:42: points in time belong to steps`},
		{"explored point in time", "explore: {actors: {a: [{open_pit: {id: s, keep_alive: 1m}}]}, observe: {v: '1'}}", `1:35: points in time belong to steps`},
		{"explored search of a point in time", "explore: {actors: {a: [{search: {id: s, pit: one}}]}, observe: {v: '1'}}", `1:46: points in time belong to steps`},
		{"explored msearch", "explore: {actors: {a: [{msearch: {searches: 2}}]}, observe: {v: '1'}}", `1:34: an exploration follows single searches`},
		{"msearch of nothing", "steps: [{at: 1s, msearch: {searches: 0}}]", `1:38: searches 0 is out of bounds: 1 to 1000`},
		{"hold of a search in steps", "steps: [{at: 1s, search: {hold: true}}]", `1:33: hold belongs to explore`},
		{"group that cannot be created", "steps: [{at: 1s, put_group: {name: new, throttling: {node_limit: 2}}}]", `1:29: WorkloadGroup.resourceLimits can't be null`},
		{"group that cannot be updated", "steps: [{at: 1s, put_group: {name: analytics, resource_limits: {gpu: 0.3}}}]", `1:29: Unknown resource type: [gpu]`},
		{"unknown mode", "steps: [{at: 1s, put_group: {name: analytics, resiliency_mode: sotf}}]", `1:64: unknown resiliency_mode "sotf": did you mean "soft"?`},
		{"group to delete", "steps: [{at: 1s, delete_group: {name: analytcs}}]", `1:39: unknown group "analytcs": did you mean "analytics"?`},
		{"stats of a group", "steps: [{at: 1s, get_stats: {group: x}}]", `1:37: unknown group "x": one of analytics, DEFAULT_WORKLOAD_GROUP`},
		{"rule without a name", "steps: [{at: 1s, put_rule: {workload_group: analytics, principal.role: [r]}}]", `1:28: put_rule lacks "name"`},
		{"rule without attributes", "steps: [{at: 1s, put_rule: {name: r, workload_group: analytics}}]", `1:28: Rule should have at least 1 attribute requirement`},
		{"rule to delete", "steps: [{at: 1s, delete_rule: {name: r}}]", `1:38: unknown rule "r": the file has none`},
		{"rules of one name", "rules: [{name: r, workload_group: analytics, principal.role: [a]}, {name: r, workload_group: analytics, principal.role: [b]}]", `1:75: a second rule is named r`},
		{"same rule twice", "rules: [{workload_group: analytics, principal.role: [a]}, {workload_group: analytics, principal.role: [a]}]", `1:59: Duplicate rule exists under id 0`},
		{"setting that is fixed", "steps: [{at: 1s, put_settings: {persistent: {cluster.publish.timeout: 1s}}}]", `1:32: persistent setting [cluster.publish.timeout], not dynamically updateable`},
		{"no setting", "steps: [{at: 1s, put_settings: {}}]", `1:32: no setting is put: give persistent or transient`},
		{"name of an index", "steps: [{at: 1s, create_index: {name: Logs}}]", `1:32: Invalid index name [Logs], must be lowercase`},
		{"two distributions", "steps: [{at: 1s, search: {service_time: {exponential: {mean: 1s}, pareto: {min: 1s, alpha: 2}}}}]", `1:41: 2 distributions at once: give one`},
		{"pareto without a mean", "steps: [{at: 1s, search: {service_time: {pareto: {min: 1s, alpha: 1}}}}]", `1:41: a pareto service time needs min over 0s and alpha over 1`},
		{"exponential of nothing", "steps: [{at: 1s, search: {service_time: {exponential: {mean: 0s}}}}]", `1:41: a mean of 0s draws nothing`},
		{"empty service time", "steps: [{at: 1s, search: {service_time: {}}}]", `1:41: service_time is empty`},
		{"one side", "steps: [{at: 1s, partition: {sides: [[m1]]}}]", `1:37: sides must be two or more but are 1`},
		{"node on two sides", "steps: [{at: 1s, partition: {sides: [[m1], [m2, m1]]}}]", `1:49: m1 is on two sides`},
		{"nobody on a side", "steps: [{at: 1s, partition: {sides: [[m1], []]}}]", `1:44: item 2 of sides is empty`},
		{"word for a side", "steps: [{at: 1s, partition: {sides: [[m1], others]}}]", `1:44: unknown item 2 of sides "others": one of rest`},
		{"links that stay", "steps: [{at: 1s, link: {sides: [[m1], rest]}}]", `1:24: the links stay as they are: give latency, loss, duplicate or reorder`},
		{"share of nothing", "steps: [{at: 1s, link: {sides: [[m1], rest], latency: 1s, loss: 0}}]", `1:65: loss 0 changes nothing: a link is made worse than the cluster's network, not better`},
		{"share over 1", "steps: [{at: 1s, link: {sides: [[m1], rest], loss: 1.5}}]", `1:52: loss 1.5 is out of bounds: 0 to 1`},
		{"disk", "steps: [{at: 1s, disk: {node: m1, fault: slow}}]", `1:24: a slow disk lacks "by"`},
		{"delay of a full disk", "steps: [{at: 1s, disk: {node: m1, fault: full, by: 1s}}]", `1:52: by belongs to a slow disk`},
		{"fate of a disk", "steps: [{at: 1s, crash: {node: m1, disk: gone}}]", `1:42: unknown disk "gone": one of kept, lost`},
		{"all leave", "steps: [{at: 1s, leave: {node: all}}]", `1:32: unknown node "all": one of m1, m2, m3, d1, d2, leader`},
		{"joiner", "steps: [{at: 1s, join: {node: x1}}]", `1:31: node "x1": a manager is m and a number`},
		{"leader to be", "steps: [{at: 1s, transfer_leadership: {to: d1}}]", `1:44: unknown manager "d1": one of m1, m2, m3`},
		{"starved node", "steps: [{at: 1s, starve_gossip: {node: x, for: 1s}}]", `1:40: unknown node "x"`},
		{"clock", "steps: [{at: 1s, clock: {node: leader, offset: 1h}}]", `1:32: unknown node "leader"`},
		{"counts", "steps: [{at: 1s, fail_counts: {node: all, group: x}}]", `1:50: unknown group "x"`},
		{"delay", "steps: [{at: 1s, delay: {node: m1, step: x, by: 1s}}]", `1:42: unknown step "x"`},
		{"repeat at once", "steps: [{at: 1s, repeat: {times: 2, every: 0s}, search: {}}]", `1:44: repeats 0s apart are all at once`},
		{"repeat for ever", "steps: [{at: 1s, repeat: {times: 1000000, every: 1h}, search: {}}]", `1:26: 1000000 times every 1h is out of bounds`},
		{"repeat with an id", "steps: [{at: 1s, repeat: {times: 2, every: 1s}, search: {id: a}}]", `1:26: search is repeated, so its request cannot have an id`},
		{"repeated hold", "steps: [{at: 1s, repeat: {times: 2, every: 1s}, hold: {node: m1, step: wlm.counted}}]", `1:26: hold cannot be repeated`},
		{"load without for", "load: [{name: a, arrive: {closed: 1}}]", `1:8: load a lacks "for"`},
		{"load without arrival", "load: [{name: a, for: 1s}]", `1:8: item 1 of load lacks "arrive"`},
		{"two arrivals", "load: [{name: a, arrive: {closed: 1, poisson: 1/s}, for: 1s}]", `1:26: 2 kinds of arrival`},
		{"think", "load: [{name: a, arrive: {poisson: 1/s, think: 1s}, for: 1s}]", `1:48: think belongs to closed`},
		{"rate", "load: [{name: a, arrive: {poisson: 1/d}, for: 1s}]", `1:36: poisson: "1/d" is no rate: write one like 200/s, 10/m or 1/h`},
		{"rate out of bounds", "load: [{name: a, arrive: {poisson: 0/s}, for: 1s}]", `1:36: poisson: rate 0/s is out of bounds`},
		{"bursts", "load: [{name: a, arrive: {burst: {size: 1, every: 0s}}, for: 1s}]", `1:51: bursts 0s apart never end`},
		{"trace elsewhere", "load: [{name: a, arrive: {trace: ../t.csv}}]", `1:34: trace "../t.csv" must lie beside the scenario`},
		{"trace with for", "load: [{name: a, arrive: {trace: t.csv}, for: 1s}]", `1:47: a trace ends by itself: leave for out`},
		{"trace with user", "load: [{name: a, user: u, arrive: {trace: t.csv}}]", `1:8: the lines of a trace name user, index and service_time`},
		{"loads of one name", "load: [{name: a, arrive: {closed: 1}, for: 1s}, {name: a, arrive: {closed: 1}, for: 1s}]", `1:56: a second load is named a`},
		{"via of a load", "load: [{name: a, via: {m1: 1, m9: 2}, arrive: {closed: 1}, for: 1s}]", `unknown node "m9"`},
		{"weight", "load: [{name: a, via: {m1: 0}, arrive: {closed: 1}, for: 1s}]", `weight 0 of m1 is out of bounds`},
		{"via nobody", "load: [{name: a, via: [], arrive: {closed: 1}, for: 1s}]", `1:23: via is empty`},
		{"retry on nothing", "load: [{name: a, arrive: {closed: 1}, for: 1s, retry: {on: [], attempts: 2}}]", `1:55: retry on no status`},
		{"retry on success", "load: [{name: a, arrive: {closed: 1}, for: 1s, retry: {on: [200], attempts: 2}}]", `1:61: item 1 of on 200 is out of bounds: 400 to 599`},
		{"backoff from nothing", "load: [{name: a, arrive: {closed: 1}, for: 1s, retry: {on: [429], attempts: 2, backoff: {factor: 2}}}]", `1:89: a backoff from 0s stays 0s: give initial`},
		{"backoff max", "load: [{name: a, arrive: {closed: 1}, for: 1s, retry: {on: [429], attempts: 2, backoff: {initial: 2s, max: 1s}}}]", `1:108: max 1s is under initial 2s`},
		{"user without a name", `users: {"": {roles: [a]}}`, `1:9: a name of 0 bytes: 1 to 1024`},
		{"role without a name", `users: {u: {roles: [""]}}`, `1:21: a name of 0 bytes: 1 to 1024`},
		{"explore without actors", "explore: {actors: {}, observe: {a: '1'}}", `nobody acts: give actors`},
		{"explore without observe", "explore: {actors: {a: [{search: {}}]}, observe: {}}", `nothing is observed: give observe`},
		{"explored fault", "explore: {actors: {a: [{disk: {node: m1, fault: full}}]}, observe: {a: '1'}}", `1:24: disk cannot be explored: requests and cancel can, and in a whole cluster partition, heal, crash, restart, transfer_leadership`},
		{"explored crash of one node", "explore: {node: m1, actors: {a: [{crash: {node: m1}}]}, observe: {a: '1'}}", `1:34: crash needs a whole cluster, and m1 alone is explored: leave explore.node out`},
		{"explored crash that counts time", "explore: {actors: {a: [{crash: {node: m1, restart_after: 1s}}]}, observe: {a: '1'}}", `1:58: an exploration has orders and no times: have an actor restart m1`},
		{"explored partition that counts time", "explore: {actors: {a: [{partition: {sides: [[m1], rest], for: 1s}}]}, observe: {a: '1'}}", `1:63: an exploration has orders and no times: have an actor heal`},
		{"restart of an unknown node", "steps: [{at: 1s, restart: {node: m9}}]", `unknown node "m9"`},
		{"heal with more", "steps: [{at: 1s, heal: {node: m1}}]", `unknown key "node"`},
		{"too many actors", "explore: {node: m1, actors: {" + actors(17) + "}, observe: {v: '1'}}", `1:29: 17 actors interleave in too many ways: at most 16`},
		{"actor of the applier's name", "explore: {node: m1, actors: {applier: [{search: {}}]}, observe: {v: '1'}}", `1:39: applier is the name of the lane of the node's applier`},
		{"hold that is not the last action", "explore: {node: m1, actors: {a: [{search: {hold: true}}, {search: {}}]}, observe: {v: '1'}}", `1:50: a search with hold: true keeps its permit to the end, so it is the last action of its actor`},
		{"explored node and via", "explore: {node: m1, actors: {a: [{search: {via: m2}}]}, observe: {a: '1'}}", `1:49: node m1 alone is explored: leave via out`},
		{"unknown explored node", "explore: {node: m7, before: [{put_group: {name: g, resiliency_mode: soft, resource_limits: {cpu: 0.1}}}], actors: {a: [{search: {}}]}, observe: {a: '1'}}", `1:17: unknown node "m7": one of m1, m2, m3, d1, d2`},
		{"actor does nothing", "explore: {actors: {a: []}, observe: {a: '1'}}", `1:23: actor a does nothing`},
		{"search of another part", "steps: [{at: 1s, search: {id: s}}]\nexplore: {actors: {a: [{search: {}}]}, observe: {a: s.status}}", `2:53: unknown name "s"`},
		{"forbid what is not observed", "explore: {actors: {a: [{search: {id: s}}]}, observe: {a: s.status}, forbid: [b > 1]}", `1:78: unknown name "b": one of a`},
		{"forbid the wrong type", "explore: {actors: {a: [{search: {id: s}}]}, observe: {a: s.status}, forbid: [\"a > ''\"]}", `invalid operation: >`},
		{"expect of an exploration", "explore: {actors: {a: [{search: {}}]}, observe: {a: '1'}}\nexpect: ['true']", `nothing runs but the exploration`},
		{"anchor", "about: &a x", `1:8: & is YAML that scenarios do not use`},
		{"alias", "about: *a", `1:8: * is YAML that scenarios do not use`},
		{"tag", "about: !!str x", `1:8: !!str is YAML that scenarios do not use`},
		{"syntax", "about: [", `sequence end token ']' not found`},
		{"list for text", "about: [a]", `1:8: about must be text but is a list`},
		{"nothing as a key", "users: {~: {roles: [b]}}", `1:9: a key must be text but is nothing`},
		{"user of a long name", "steps: [{at: 1s, search: {user: " + strings.Repeat("u", 1025) + "}}]", `a name of 1025 bytes: 1 to 1024`},
		{"group of a hold", "steps: [{at: 1s, hold: {node: m1, step: wlm.counted, group: x}}]", `1:61: unknown group "x": one of analytics`},
		{"unknown actor that comes together", "explore: {node: m1, together: [b], actors: {a: [{delete_group: {name: analytics}}]}, observe: {v: '1'}}", `1:32: unknown actor "b": one of a`},
		{"a search that comes together", "explore: {node: m1, together: [a], actors: {a: [{search: {}}]}, observe: {v: '1'}}", `1:32: actor a does more than change the state`},
		{"together at no node", "explore: {together: [a], actors: {a: [{delete_group: {name: analytics}}]}, observe: {v: '1'}}", `1:22: changes come together at one node`},
		{"observed name", "explore: {actors: {a: [{search: {}}]}, observe: {a-b: '1'}}", `1:55: the observed value "a-b" cannot be named in expressions`},
		{"observed value of no type", "explore: {actors: {a: [{search: {}}]}, observe: {a: '[1, \"a\"][0]'}}", `1:54: the value has no fixed type`},
		{"end of a range", "steps: [{at: 1s, link: {sides: [[m1], rest], latency: 1ms..-5ms}}]", `1:55: latency: time -5ms is negative`},
		{"start of a range", "steps: [{at: 1s, link: {sides: [[m1], rest], latency: x..5ms}}]", `1:55: latency: "x" is no time`},
		{"rate too low", "load: [{name: a, arrive: {poisson: 1e-300/s}, for: 1s}]", `1:36: poisson: rate 1e-300/s is out of bounds`},
		{"alpha of a pareto", "steps: [{at: 1s, search: {service_time: {pareto: {min: 1s, alpha: 101}}}}]", `1:67: alpha 101 is out of bounds: at most 100`},
		{"factor without end", "load: [{name: a, arrive: {closed: 1}, for: 1s, retry: {on: [429], attempts: 2, backoff: {initial: 1s, factor: 1e999}}}]", `1:111: factor 1e999 is out of bounds: 1 to 100`},
		{"second document", "---\nversion: 1", `2:1: a second document: a file holds one scenario`},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := base + test.text + "\n"
			_, err := scenario.Parse("file.yaml", []byte(text))
			var faults scenario.Faults
			require.ErrorAs(t, err, &faults)
			require.Len(t, faults, 1, err)
			faults[0].Line -= strings.Count(base, "\n")
			require.Contains(t, faults[0].String(), test.want)
		})
	}
}

// A point in time without a name is no one to choose from, and in an exploration
// each step that has to do with one is a fault.
func TestFaultsOfSeveralStepsWithPointsInTime(t *testing.T) {
	for text, want := range map[string][]string{
		"steps: [{at: 1s, open_pit: {keep_alive: 1m}}, {at: 2s, search: {pit: one}}]": {
			`6:28: open_pit lacks "id", which searches and close_pit name it by`, `6:70: unknown earlier open_pit "one": the file has none`},
		"explore: {actors: {a: [{open_pit: {id: s, keep_alive: 1m}}, {search: {pit: s}}, {close_pit: {pit: s}}]}, observe: {v: '1'}}": {
			"6:35: points in time belong to steps", "6:76: points in time belong to steps", "6:99: points in time belong to steps"},
	} {
		_, err := scenario.Parse("file.yaml", []byte(base+text+"\n"))
		var faults scenario.Faults
		require.ErrorAs(t, err, &faults)
		require.Len(t, faults, len(want), err)
		for i := range want {
			require.Contains(t, faults[i].String(), want[i])
		}
	}
}

// An expression's faults are shown within it.
func TestFaultsOfExpressions(t *testing.T) {
	const file = base + "load: [{name: dash, arrive: {closed: 1}, for: 1s}]\nsteps: [{at: 1s, search: {id: one}}, {at: 2s, get_stats: {id: counted, group: analytics}}]\nexpect:\n  - "
	for _, test := range []struct{ expression, want string }{
		{`one.statos == 429`, `9: unknown field "statos": did you mean "status"?`},
		{`one.error.kind == ""`, `15: unknown field "kind": one of type, reason`},
		{`oen.status == 429`, `5: unknown name "oen": did you mean "one"?`},
		{`1 < two.status`, `9: unknown name "two": one of bucket_peak, counted, load, one, outcomes, permits, state, stats`},
		{`counted.total_throtled == 0`, `13: unknown field "total_throtled": did you mean "total_throttled"?`},
		{`load.dahs.sent > 0`, `10: unknown load "dahs": did you mean "dash"?`},
		{`load.dash.snet > 0`, `15: unknown field "snet": did you mean "sent"?`},
		{`stats("d9", "analytics").total_throttled == 0`, `11: unknown node "d9": one of m1, m2, m3, d1, d2`},
		{`stats("analytisc").total_throttled == 0`, `11: unknown group "analytisc": did you mean "analytics"?`},
		{`permits("d1").held == 0`, `5: permits takes (node, group)`},
		{`stats("d1", "analytics", "x").total_throttled == 0`, `5: stats takes (group) or (node, group)`},
		{`one.error.type.x == ""`, `unknown field "x"`},
		{`one.took < duration()`, `not enough arguments`},
		{strings.Repeat("1 + ", 1000) + "1 == 1001", `the expression has 4009 bytes: at most 2000`},
		{`one.status`, `5: must be true or false: expected bool, but got int`},
		{`one.status == "429"`, `invalid operation: == (mismatched types int and string)`},
		{`one.took < duration("5 s")`, `16: "5 s" is no time`},
		{`one.status ==`, `unexpected token EOF`},
		{`'"one.statos == 429"'`, `expected bool, but got string`},
		{`"one.statos == 429"`, `10: unknown field "statos"`},
	} {
		_, err := scenario.Parse("file.yaml", []byte(file+test.expression+"\n"))
		var faults scenario.Faults
		require.ErrorAs(t, err, &faults, test.expression)
		require.Len(t, faults, 1, test.expression)
		require.Contains(t, faults[0].String(), "file.yaml:9:")
		require.Contains(t, faults[0].String(), test.want, test.expression)
	}
}

// Promise 2: names that are short or of another alphabet do not confuse the
// caret, and a long line is cut around the fault.
func TestTheCaretStandsUnderTheFault(t *testing.T) {
	_, err := scenario.Parse("f.yaml", []byte("version: 1\nname: x\nusers: {größe: {rolls: []}}\n"))
	require.EqualError(t, err, "f.yaml:3:17: unknown key \"rolls\": did you mean \"roles\"?\n    users: {größe: {rolls: []}}\n                    ^")
	_, err = scenario.Parse("f.yaml", []byte("version: 1\nname: x\nusers: {"+strings.Repeat("a", 500)+": {rolls: []}}\n"))
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines[1], 164)
	require.Equal(t, "rolls", lines[1][len(lines[2])-1:][:5])
}

// A whole file of faults stays readable.
func TestOnlySoManyFaultsAreShown(t *testing.T) {
	_, err := scenario.Parse("f.yaml", []byte("version: 1\nname: x\nsteps:\n"+strings.Repeat("  - {at: 1s, search: {user: 1}}\n", scenario.MaxFaults+5)))
	require.Len(t, err, scenario.MaxFaults+5)
	require.True(t, strings.HasSuffix(err.Error(), "and 5 more"))
	_, err = scenario.Parse("f.yaml", []byte("version: 1\nname: x\ncluster: {data: 100}\nsteps: [{at: 1s, search: {via: x}}]"))
	require.ErrorContains(t, err, "m1, m2, m3, d1, d2, d3,")
	require.ErrorContains(t, err, "and 74 more")
}

func TestARateWithoutAUnitCannotBePrinted(t *testing.T) {
	f := scenario.File{Load: []scenario.Load{{Arrive: scenario.Arrival{Poisson: scenario.Rate{Count: 1, Per: time.Hour * 24}}}}}
	require.Panics(t, func() { scenario.Print(&f) })
}

// Promise 1: what cannot be read at all is a fault as well.
func TestTextsThatAreNoFiles(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", "f.yaml:1:1: there is nothing in it"},
		{"# only a comment", "there is nothing in it"},
		{"\xff", "not UTF-8"},
		{"17", "the file must be a mapping but is a number"},
		{"[]", "the file must be a mapping but is a list"},
		{"version: 1", `the file lacks "name"`},
		{"version: 2\nname: x", "version 2 is out of bounds: 1 to 1"},
		{strings.Repeat("[", 100000), "nested deeper than 32"},
		{strings.Repeat("- ", 100000), "nested deeper than 32"},
		{"a: " + strings.Repeat(" ", scenario.MaxFileBytes), "bytes: at most 1048576"},
	} {
		_, err := scenario.Parse("f.yaml", []byte(test.text))
		require.ErrorContains(t, err, test.want)
	}
}

// Promise 6: defaults fill what is missing, and nothing else.
func TestFilledKnowsTheDefaults(t *testing.T) {
	f := parse(t, "version: 1\nname: x\nload: [{name: a, arrive: {closed: 1}, for: 1s, retry: {on: [429], attempts: 2}}]\nsteps:\n  - {at: 1s, search: {}}\n  - {at: 1s, crash: {node: d1}}\n  - {at: 1s, create_index: {name: i}}\nexplore: {node: d1, before: [{search: {}}], actors: {a: [{search: {}}]}, observe: {v: '1'}}")
	was := string(scenario.Print(f))
	golden(t, "testdata/filled.golden", string(scenario.Print(f.Filled())))
	require.Equal(t, was, string(scenario.Print(f)), "the file itself stays")

	f = parse(t, base+"profile: submitted\n", "cluster.settings.wlm.workload_group.mode=disabled", "cluster.network.latency=0s")
	filled := f.Filled()
	require.Equal(t, "submitted", filled.Profile)
	require.Equal(t, scenario.Setting("disabled"), filled.Cluster.Settings[cluster.SettingMode])
	require.Equal(t, &scenario.Range{}, filled.Cluster.Network.Latency)
	require.Equal(t, 2, filled.Cluster.Data)
}

func TestForPutsTheProfileInItsPlace(t *testing.T) {
	f := parse(t, read(t, "testdata/design.yaml"))
	require.True(t, scenario.Equal(f, f.For("reviewed")))
	s := f.For("submitted")
	require.Equal(t, "submitted", s.Profile)
	require.Equal(t, []scenario.Promise{scenario.PrincipalStays, scenario.RejectionAttribution}, s.Breaks)
	require.Equal(t, scenario.Expression(`stats("d2", "DEFAULT_WORKLOAD_GROUP").total_throttled == 1`), s.Expect[1])
	require.Len(t, f.Expect, 3)
	require.Equal(t, []int{41, 48}, []int{f.Line("expect[1]"), s.Line("expect[1]")}, "what replaces has its own lines")
	require.Equal(t, f.Expect, f.For("elsewhere").Expect, "what under: does not give stays")
	require.Empty(t, f.For("elsewhere").Breaks)
}

// What an exploration forbids and requires may be another under a profile.
func TestForPutsTheOutcomesOfAProfileInTheirPlace(t *testing.T) {
	f := parse(t, read(t, "testdata/explore.yaml"))
	s := f.For("submitted")
	require.Equal(t, []scenario.Expression{"group > 1"}, s.Explore.Forbid)
	require.Equal(t, []scenario.Expression{"second == 429 && default == 1", "second == 200 && default == 1"}, s.Explore.Require)
	require.Equal(t, []int{16, 17}, []int{s.Line("explore.forbid[0]"), s.Line("explore.require[1]")})
	require.Equal(t, []scenario.Expression{"default > 0"}, f.Explore.Forbid, "the file stays")
	require.Equal(t, []scenario.Expression{"default > 0"}, f.For("elsewhere").Explore.Forbid)
}

func TestLinesOfAFile(t *testing.T) {
	f := parse(t, read(t, "testdata/design.yaml"))
	require.Equal(t, 40, f.Line("expect[0]"))
	require.Equal(t, 29, f.Line("steps[2]"))
	require.Equal(t, 30, f.Line("steps[2].search.size"), "nearest around it")
	require.Equal(t, 0, (&scenario.File{}).Line("expect[0]"))
}

// A file's values become the cluster's commands.
func TestGroupsBecomeCommands(t *testing.T) {
	g := scenario.Group{Name: "g", ResiliencyMode: cluster.Soft, ResourceLimits: map[string]float64{"cpu": 0.1}, Settings: map[string]scenario.Setting{"override_request_values": "true"}}
	made := g.Create()
	require.Nil(t, made.Throttling)
	require.Equal(t, map[string]string{"override_request_values": "true"}, made.Settings)
	require.Equal(t, cluster.ThrottlingPatch{}, g.Update().Throttling)

	g.Throttling = &scenario.Throttling{}
	require.Nil(t, g.Create().Throttling)
	require.Equal(t, cluster.ThrottlingPatch{Clear: true}, g.Update().Throttling)

	g.Throttling = &scenario.Throttling{NodeLimit: 5}
	require.Equal(t, int64(5), *g.Create().Throttling.NodeLimit)
	require.Equal(t, cluster.ThrottlingPatch{NodeLimit: cluster.Give(int64(5))}, g.Update().Throttling)

	g.Throttling = &scenario.Throttling{Attribute: cluster.ByRole}
	require.Equal(t, cluster.ThrottlingPatch{Attribute: cluster.Give(cluster.ByRole)}, g.Update().Throttling)
	require.Equal(t, "true", *g.Update().Settings.Set["override_request_values"])
}

// actors returns the text of so many actors.
func actors(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("a%d: [{search: {}}]", i))
	}
	return strings.Join(all, ", ")
}

// Promise 2: what cannot be explored is a fault of the file.
func TestTooLargeAClusterToExplore(t *testing.T) {
	_, err := scenario.Parse("x.yaml", []byte("version: 1\nname: x\nexplore: {actors: {a: [{search: {}}]}, observe: {v: '1'}}"))
	require.ErrorContains(t, err, "x.yaml:3:10: without explore.node the whole cluster is explored, and it has 6 nodes: at most 5; give cluster.managers and cluster.data")
}

// Some editors write a byte order mark.
func TestAByteOrderMarkIsPassed(t *testing.T) {
	_, err := scenario.Parse("f.yaml", []byte("\uFEFFversion: 1\r\nname: x\r\n"))
	require.NoError(t, err)
}
