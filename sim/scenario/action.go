package scenario

import (
	"reflect"

	"github.com/wlmsim/wlmsim/cluster/probe"
)

// Words that stand for nodes where a step names one.
const (
	Leader = "leader" // the node that leads at that moment
	All    = "all"    // every node
	Rest   = "rest"   // as a side: every node that no other side names
)

// Step is one action at one time.
type Step struct {
	// At is when the step starts, from the start of the run.
	At Duration `yaml:"at" jsonschema:"required"`
	// Repeat starts the step again and again.
	Repeat *Repeat `yaml:"repeat"`
	Action
}

// Repeat starts a step several times.
type Repeat struct {
	// Times the step runs in all.
	Times int `yaml:"times" jsonschema:"required,minimum=2,maximum=1000000"`
	// Every is the time from one start to the next.
	Every Duration `yaml:"every" jsonschema:"required"`
}

// Action is what a step does. Exactly one field is set.
type Action struct {
	// Hold parks arrivals at a named step of a node until it is released.
	Hold *Hold `yaml:"hold"`
	// Release lets go of what a hold parked.
	Release *Release `yaml:"release"`
	// PutGroup creates a group, or updates the one of that name.
	PutGroup *PutGroup `yaml:"put_group"`
	// DeleteGroup deletes the group of a name.
	DeleteGroup *DeleteGroup `yaml:"delete_group"`
	// GetGroups lists the groups.
	GetGroups *GetGroups `yaml:"get_groups"`
	// GetStats reads the counters of a group on the node that takes the request.
	GetStats *GetStats `yaml:"get_stats"`
	// PutSettings changes the cluster's settings.
	PutSettings *PutSettings `yaml:"put_settings"`
	// PutRule creates a rule, or updates the one of that name.
	PutRule *PutRule `yaml:"put_rule"`
	// DeleteRule deletes the rule of a name.
	DeleteRule *DeleteRule `yaml:"delete_rule"`
	// CreateIndex creates an index.
	CreateIndex *CreateIndex `yaml:"create_index"`
	// DeleteIndex deletes an index.
	DeleteIndex *DeleteIndex `yaml:"delete_index"`
	// Search sends one search.
	Search *Search `yaml:"search"`
	// MultiSearch sends several searches as one request.
	MultiSearch *MultiSearch `yaml:"msearch"`
	// OpenPit opens a point in time, which searches may then name.
	OpenPit *OpenPit `yaml:"open_pit"`
	// ClosePit ends a point in time.
	ClosePit *ClosePit `yaml:"close_pit"`
	// Cancel breaks the connection of a search's client.
	Cancel *Cancel `yaml:"cancel"`
	// Partition cuts the network between sides; messages are dropped silently.
	Partition *Partition `yaml:"partition"`
	// Link makes the network between sides worse.
	Link *Link `yaml:"link"`
	// Heal ends every partition, and whatever link made worse.
	Heal *Heal `yaml:"heal"`
	// Crash stops a node at once: its links are cut and its store is frozen.
	Crash *Crash `yaml:"crash"`
	// Restart starts a node again that has crashed, before its time.
	Restart *Restart `yaml:"restart"`
	// Leave takes a node out in an orderly way.
	Leave *Leave `yaml:"leave"`
	// Join starts one more node, or a second one under a name that is taken.
	Join *Join `yaml:"join"`
	// TransferLeadership moves the leadership.
	TransferLeadership *TransferLeadership `yaml:"transfer_leadership"`
	// Disk makes a node's store fail or slow.
	Disk *Disk `yaml:"disk"`
	// Delay slows every arrival at a step of a node: a slow applier, listener or data node.
	Delay *Delay `yaml:"delay"`
	// StarveGossip stops a node's gossip from being handled.
	StarveGossip *StarveGossip `yaml:"starve_gossip"`
	// Clock sets a node's wall clock, which it stamps groups and rules with, ahead or behind.
	Clock *Clock `yaml:"clock"`
	// FailCounts makes the counting of rejections fail on a node.
	FailCounts *FailCounts `yaml:"fail_counts"`
	// Expect lists expressions that are true at that moment.
	Expect []Expression `yaml:"expect"`
}

// Hold names a window. It ends by a release, or at the end of the run.
type Hold struct {
	// Node whose step it is.
	Node string `yaml:"node" jsonschema:"required"`
	// Step that is held.
	Step probe.Step `yaml:"step" jsonschema:"required"`
	// Group: park only what is about this group.
	Group string `yaml:"group"`
	// Search: park only the search of this id.
	Search string `yaml:"search"`
	// Listener: park only this listener or subscriber.
	Listener string `yaml:"listener"`
	// Count: park this many arrivals and let later ones pass.
	Count int `yaml:"count" jsonschema:"minimum=1,maximum=1000000"`
}

// Release ends a hold.
type Release struct {
	// Node whose step is held.
	Node string `yaml:"node" jsonschema:"required"`
	// Step that is held.
	Step probe.Step `yaml:"step" jsonschema:"required"`
}

// Request is the part that all requests of steps share.
type Request struct {
	// ID by which expressions know the answer. Two requests never share one.
	ID string `yaml:"id"`
	// Via is the node that takes the request, or leader: m1 unless the file says otherwise.
	Via string `yaml:"via"`
}

// PutGroup is the body of the group. In an update, what is absent stays.
type PutGroup struct {
	Group
	Request
}

// DeleteGroup names a group.
type DeleteGroup struct {
	// Name of the group.
	Name string `yaml:"name" jsonschema:"required"`
	Request
}

// GetGroups is a read.
type GetGroups struct {
	Request
	// Local reads the node's own state and does not ask the leader.
	Local bool `yaml:"local"`
}

// GetStats names a group.
type GetStats struct {
	// Group whose counters are read.
	Group string `yaml:"group" jsonschema:"required"`
	Request
}

// PutSettings is a change of settings.
type PutSettings struct {
	// Persistent settings.
	Persistent map[string]Setting `yaml:"persistent"`
	// Transient settings, which cover persistent ones.
	Transient map[string]Setting `yaml:"transient"`
	Request
}

// PutRule is the whole body of a rule, its name included.
type PutRule struct {
	Rule
	Request
}

// DeleteRule names a rule.
type DeleteRule struct {
	// Name of the rule.
	Name string `yaml:"name" jsonschema:"required"`
	Request
}

// CreateIndex is an index and its name.
type CreateIndex struct {
	// Name of the index.
	Name string `yaml:"name" jsonschema:"required"`
	Index
	Request
}

// DeleteIndex names an index.
type DeleteIndex struct {
	// Name of the index.
	Name string `yaml:"name" jsonschema:"required"`
	Request
}

// DefaultSize is how many hits a search asks for unless the file says otherwise.
const DefaultSize = 10

// Search is one search.
type Search struct {
	Request
	// User whose search it is; without one it has no principal.
	User string `yaml:"user"`
	// Group whose id it carries in the workloadGroupId header; without one the rules decide.
	Group string `yaml:"group"`
	// Index that is searched, as an OpenSearch expression; without one, all.
	Index string `yaml:"index"`
	// ServiceTime of each shard, in place of the index's.
	ServiceTime *ServiceTime `yaml:"service_time"`
	// Timeout that the search asks for; without one, the cluster's.
	Timeout Duration `yaml:"timeout"`
	// AllowPartial says whether the answer may lack shards; without it, the cluster decides.
	AllowPartial *bool `yaml:"allow_partial"`
	// Size is the number of hits that are asked for: 10 unless the file says otherwise.
	Size int `yaml:"size" jsonschema:"minimum=1,maximum=10000"`
	// Scroll keeps the search open for that long, so that its next page can be asked for.
	Scroll Duration `yaml:"scroll"`
	// PageOf is the id of an earlier search with scroll, whose next page this is.
	PageOf string `yaml:"page_of"`
	// Pit is the id of an earlier open_pit, whose point in time is searched in place of an index.
	Pit string `yaml:"pit"`
	// Lookups are the indices of terms lookups in the query: nested searches, one each, that run first.
	Lookups []string `yaml:"lookups"`
	// Unread: the client does not read the answer.
	Unread bool `yaml:"unread"`
	// Hold, in explore alone: the search keeps its permit to the end.
	Hold bool `yaml:"hold"`
}

// MultiSearch is several searches that are alike, as one request.
type MultiSearch struct {
	Request
	// Searches is how many there are.
	Searches int `yaml:"searches" jsonschema:"required,minimum=1,maximum=1000"`
	// MaxConcurrent is how many of them run at once; without it, ten for each data node.
	MaxConcurrent int `yaml:"max_concurrent" jsonschema:"minimum=1,maximum=1000"`
	// User whose searches they are; without one they have no principal.
	User string `yaml:"user"`
	// Group whose id they carry in the workloadGroupId header; without one the rules decide.
	Group string `yaml:"group"`
	// Index that is searched, as an OpenSearch expression; without one, all.
	Index string `yaml:"index"`
	// ServiceTime of each shard, in place of the index's.
	ServiceTime *ServiceTime `yaml:"service_time"`
}

// OpenPit is a point in time. To open it takes no permit.
type OpenPit struct {
	Request
	// Index that it holds, as an OpenSearch expression; without one, all.
	Index string `yaml:"index"`
	// KeepAlive is how long it is kept.
	KeepAlive Duration `yaml:"keep_alive" jsonschema:"required"`
}

// ClosePit names a point in time.
type ClosePit struct {
	Request
	// Pit is the id of the open_pit that opened it.
	Pit string `yaml:"pit" jsonschema:"required"`
}

// Cancel names a search.
type Cancel struct {
	// Search whose client goes away.
	Search string `yaml:"search" jsonschema:"required"`
}

// Side is a list of nodes, or rest: every node that no other side names.
type Side struct {
	Word  string   `yaml:",scalar" jsonschema:"-,enum=rest"`
	Nodes []string `yaml:",list" jsonschema:"-"`
}

// Between says which links a fault of the network is about.
type Between struct {
	// Sides between which it acts: two or more.
	Sides []Side `yaml:"sides" jsonschema:"required"`
	// OneWay: only messages from an earlier side to a later one meet it.
	OneWay bool `yaml:"one_way"`
	// For is how long it lasts; without it, until everything heals at the end.
	For Duration `yaml:"for"`
}

// Partition drops every message between the sides.
type Partition struct {
	Between
}

// Link sets what it gives in place of the cluster's network.
type Link struct {
	Between
	Network
}

// Crash ends with a restart.
type Crash struct {
	// Node that crashes: a name, leader or all.
	Node string `yaml:"node" jsonschema:"required"`
	// RestartAfter is how long it is away; without it, until everything heals at the end.
	RestartAfter Duration `yaml:"restart_after"`
	// Disk says whether it comes back with what it had stored: kept unless the file says lost.
	Disk string `yaml:"disk" jsonschema:"enum=kept,enum=lost"`
	// NewAddress: it comes back at another address.
	NewAddress bool `yaml:"new_address"`
}

// Restart names a node that a crash took down. One that is up stays as it is.
type Restart struct {
	// Node that starts again, with what its crash says of its disk: a name or all.
	Node string `yaml:"node" jsonschema:"required"`
}

// Heal is about the whole network, and says nothing more.
type Heal struct{}

// Leave may end with a return.
type Leave struct {
	// Node that leaves: a name or leader.
	Node string `yaml:"node" jsonschema:"required"`
	// ReturnAfter is how long it is away; without it, it stays away.
	ReturnAfter Duration `yaml:"return_after"`
	// NewAddress: it comes back at another address.
	NewAddress bool `yaml:"new_address"`
}

// Join has an answer: 200 once the node is a member, 409 if it was refused.
type Join struct {
	// ID by which expressions know the answer.
	ID string `yaml:"id"`
	// Node that joins: m and a number is a manager, d and a number a data node.
	Node string `yaml:"node" jsonschema:"required"`
}

// TransferLeadership names the next leader.
type TransferLeadership struct {
	// To is the manager that shall lead; without it, any other.
	To string `yaml:"to"`
}

// Disk is a fault of a store.
type Disk struct {
	// Node whose store it is: a name or leader.
	Node string `yaml:"node" jsonschema:"required"`
	// Fault: full (no space left) or slow.
	Fault string `yaml:"fault" jsonschema:"required,enum=full,enum=slow"`
	// By is how much longer each write takes on a slow disk.
	By Range `yaml:"by"`
	// For is how long it lasts; without it, until everything heals at the end.
	For Duration `yaml:"for"`
}

// Delay is a drawn delay.
type Delay struct {
	// Node whose step it is: a name, leader or all.
	Node string `yaml:"node" jsonschema:"required"`
	// Step that is slowed.
	Step probe.Step `yaml:"step" jsonschema:"required"`
	// By is the delay, drawn for each arrival.
	By Range `yaml:"by" jsonschema:"required"`
	// Listener: slow only this listener or subscriber.
	Listener string `yaml:"listener"`
	// For is how long it lasts; without it, until everything heals at the end.
	For Duration `yaml:"for"`
}

// StarveGossip is a node that does not get to its gossip.
type StarveGossip struct {
	// Node that is starved: a name or leader.
	Node string `yaml:"node" jsonschema:"required"`
	// For is how long it lasts.
	For Duration `yaml:"for" jsonschema:"required"`
}

// Clock is a wrong clock. It stays wrong.
type Clock struct {
	// Node whose clock it is.
	Node string `yaml:"node" jsonschema:"required"`
	// Offset from the true time: 8h ahead, -8h behind.
	Offset Offset `yaml:"offset" jsonschema:"required"`
}

// FailCounts is a fault of the bookkeeping.
type FailCounts struct {
	// Node whose counting fails: a name or all.
	Node string `yaml:"node" jsonschema:"required"`
	// Group whose rejections cannot be counted; without one, those of every group.
	Group string `yaml:"group"`
	// For is how long it lasts; without it, until everything heals at the end.
	For Duration `yaml:"for"`
}

// Names returns the keys of all the fields of a that are set. A checked file
// has exactly one in each action.
func (a *Action) Names() []string {
	var names []string
	for _, f := range fieldsOf(reflect.TypeFor[Action]()) {
		if !reflect.ValueOf(a).Elem().FieldByIndex(f.index).IsZero() {
			names = append(names, f.name)
		}
	}
	return names
}

func actionNames() []string {
	_, keys := named(reflect.TypeFor[Action]())
	return keys
}

// Name returns the key of the action of a checked file, such as put_group.
func (a *Action) Name() string { return a.Names()[0] }

// Request returns the part of the action that says how the request is sent,
// or nil if it is no request to the HTTP API.
func (a *Action) Request() *Request {
	switch {
	case a.PutGroup != nil:
		return &a.PutGroup.Request
	case a.DeleteGroup != nil:
		return &a.DeleteGroup.Request
	case a.GetGroups != nil:
		return &a.GetGroups.Request
	case a.GetStats != nil:
		return &a.GetStats.Request
	case a.PutSettings != nil:
		return &a.PutSettings.Request
	case a.PutRule != nil:
		return &a.PutRule.Request
	case a.DeleteRule != nil:
		return &a.DeleteRule.Request
	case a.CreateIndex != nil:
		return &a.CreateIndex.Request
	case a.DeleteIndex != nil:
		return &a.DeleteIndex.Request
	case a.Search != nil:
		return &a.Search.Request
	case a.MultiSearch != nil:
		return &a.MultiSearch.Request
	case a.OpenPit != nil:
		return &a.OpenPit.Request
	case a.ClosePit != nil:
		return &a.ClosePit.Request
	}
	return nil
}

// ID returns the id of the action, or "" if it has none.
func (a *Action) ID() string {
	if a.Join != nil {
		return a.Join.ID
	}
	if r := a.Request(); r != nil {
		return r.ID
	}
	return ""
}

func (a *Action) fill(via string) {
	if r := a.Request(); r != nil {
		fill(&r.Via, via)
	}
	switch {
	case a.Search != nil:
		fill(&a.Search.Size, DefaultSize)
	case a.CreateIndex != nil:
		a.CreateIndex.Index.fill()
	case a.Crash != nil:
		fill(&a.Crash.Disk, "kept")
	}
}
