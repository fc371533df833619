package scenario

import (
	_ "embed" // the schema and the starter
	"fmt"

	"github.com/wlmsim/wlmsim/cluster/probe"
)

//go:embed schema.json
var schema []byte

//go:embed starter.yaml
var starter string

// SchemaLine is the first line of every file in a themed folder of scenarios/;
// it tells editors where the schema is.
const SchemaLine = "# yaml-language-server: $schema=../../sim/scenario/schema.json"

// Schema returns the JSON schema of the format.
func Schema() []byte { return append([]byte(nil), schema...) }

// Starter returns a commented scenario to begin with.
func Starter() string { return starter }

// Kind says what an [Item] of the catalog is.
type Kind string

// The kinds of items.
const (
	Window    Kind = "window"    // opens or closes a moment
	Requests  Kind = "request"   // goes to the HTTP API
	FaultKind Kind = "fault"     // makes the cluster worse
	Check     Kind = "check"     // looks at what happened
	NodeStep  Kind = "node step" // a place in a node that can be held or delayed
	Promised  Kind = "promise"   // checked without being asked for
)

// Item is one thing that a file may say, with an example that parses as the
// steps: of a file that has a group analytics, or, of a promise, as the rest
// of a file.
type Item struct {
	Kind    Kind
	Name    string
	Means   string
	Example string
}

// Catalog lists all actions, node steps and promises.
func Catalog() []Item {
	items := actionItems()
	for _, s := range probe.Steps() {
		items = append(items, Item{NodeStep, string(s), "a place where a node can be held or delayed",
			fmt.Sprintf("- {at: 10s, hold: {node: m1, step: %s}}\n", s)})
	}
	for _, m := range Promises() {
		items = append(items, Item{Promised, string(m.Promise), m.Means, fmt.Sprintf("breaks: [%s]\n", m.Promise)})
	}
	return items
}

func actionItems() []Item {
	return []Item{
		{Window, "hold", "parks every arrival at a step of a node", "- {at: 10s, hold: {node: d2, step: applier.notify, listener: wlm, count: 1}}\n"},
		{Window, "release", "lets go of what a hold parked", "- {at: 10s, hold: {node: d2, step: applier.published}}\n- {at: 12s, release: {node: d2, step: applier.published}}\n"},
		{Requests, "put_group", "creates a group, or updates the one of that name", "- {at: 10s, put_group: {name: analytics, throttling: {node_limit: 5}, id: lower, via: d1}}\n"},
		{Requests, "delete_group", "deletes a group", "- {at: 10s, delete_group: {name: analytics}}\n"},
		{Requests, "get_groups", "lists the groups; as ID.groups in expressions", "- {at: 10s, get_groups: {id: seen, via: d1, local: true}}\n"},
		{Requests, "get_stats", "reads a group's counters on one node; as ID.total_throttled and so on", "- {at: 10s, get_stats: {group: analytics, id: counted, via: d1}}\n"},
		{Requests, "put_settings", "changes the cluster's settings", "- {at: 10s, put_settings: {transient: {wlm.workload_group.mode: monitor_only}}}\n"},
		{Requests, "put_rule", "creates a rule, or updates the one of that name", "- {at: 10s, put_rule: {name: analysts, workload_group: analytics, principal.role: [analyst]}}\n"},
		{Requests, "delete_rule", "deletes a rule", "- {at: 10s, put_rule: {name: logs, workload_group: analytics, index_pattern: [logs*]}}\n- {at: 20s, delete_rule: {name: logs}}\n"},
		{Requests, "create_index", "creates an index", "- {at: 10s, create_index: {name: audit, shards: 3, service_time: {pareto: {min: 5ms, alpha: 1.5}}}}\n"},
		{Requests, "delete_index", "deletes an index", "- {at: 10s, delete_index: {name: logs}}\n"},
		{Requests, "search", "sends one search, or with page_of the next page of one with scroll", "- {at: 9s, search: {id: first, scroll: 1m}}\n- {at: 9500ms, search: {page_of: first}}\n- {at: 10s, search: {id: one, via: d1, user: alice, group: analytics, service_time: 2s, timeout: 5s}}\n"},
		{Requests, "msearch", "sends several searches as one request; as ID.items[0].status and so on in expressions", "- {at: 10s, msearch: {id: several, searches: 5, max_concurrent: 2, user: alice, group: analytics}}\n"},
		{Requests, "open_pit", "opens a point in time, which a search names by pit", "- {at: 9s, open_pit: {id: point, index: logs, keep_alive: 1m}}\n- {at: 10s, search: {pit: point, via: d1}}\n- {at: 11s, open_pit: {id: other, keep_alive: 5m}}\n"},
		{Requests, "close_pit", "ends a point in time; as ID.successful in expressions", "- {at: 9s, open_pit: {id: point, keep_alive: 1m}}\n- {at: 10s, close_pit: {id: closed, pit: point}}\n"},
		{Requests, "cancel", "breaks the connection of a search's client", "- {at: 10s, search: {id: long, service_time: 1m}}\n- {at: 11s, cancel: {search: long}}\n"},
		{FaultKind, "partition", "drops every message between sides", "- {at: 10s, partition: {sides: [[m1, d1], rest], one_way: true, for: 20s}}\n"},
		{FaultKind, "link", "makes the network between sides slow or lossy", "- {at: 10s, link: {sides: [[d1], rest], latency: 50ms..80ms, loss: 0.1, duplicate: 0.05, reorder: 0.2, for: 20s}}\n"},
		{FaultKind, "heal", "ends every partition, and whatever link made worse", "- {at: 10s, partition: {sides: [[m1], rest]}}\n- {at: 20s, heal: {}}\n"},
		{FaultKind, "crash", "stops a node at once; it restarts, with or without its disk", "- {at: 10s, crash: {node: leader, restart_after: 5s, disk: lost}}\n"},
		{FaultKind, "restart", "starts a node that has crashed again, before its time", "- {at: 10s, crash: {node: m2}}\n- {at: 20s, restart: {node: m2}}\n"},
		{FaultKind, "leave", "takes a node out in an orderly way; it may come back", "- {at: 10s, leave: {node: d2, return_after: 1m, new_address: true}}\n"},
		{FaultKind, "join", "starts one more node, or a second one under a name that is taken", "- {at: 10s, join: {id: joined, node: d4}}\n"},
		{FaultKind, "transfer_leadership", "moves the leadership, again and again with repeat", "- {at: 10s, repeat: {times: 50, every: 100ms}, transfer_leadership: {}}\n"},
		{FaultKind, "disk", "makes a node's store full or slow", "- {at: 10s, disk: {node: m1, fault: slow, by: 10ms..50ms, for: 20s}}\n"},
		{FaultKind, "delay", "slows a step of a node: a slow applier, listener or data node", "- {at: 10s, delay: {node: d2, step: datanode.answer, by: 100ms..500ms, for: 20s}}\n"},
		{FaultKind, "starve_gossip", "keeps a node from its gossip", "- {at: 10s, repeat: {times: 20, every: 3s}, starve_gossip: {node: d2, for: 2s}}\n"},
		{FaultKind, "clock", "sets a node's wall clock ahead or behind", "- {at: 10s, clock: {node: m1, offset: -8h}}\n"},
		{FaultKind, "fail_counts", "makes the counting of rejections fail", "- {at: 10s, fail_counts: {node: all, group: analytics, for: 20s}}\n"},
		{Check, "expect", "checks expressions at that moment", "- {at: 10s, expect: [state(\"m1\").leader != \"\"]}\n"},
	}
}
