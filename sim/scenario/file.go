package scenario

import (
	"github.com/wlmsim/wlmsim/cluster"
)

// Version is the version of the format.
const Version = 1

// File is a scenario. Zero values mean that the file says nothing; see
// [File.Filled] for what holds then.
type File struct {
	// Version of the format: 1.
	Version int `yaml:"version" jsonschema:"required,minimum=1,maximum=1"`
	// Name says in one sentence what the scenario shows.
	Name string `yaml:"name" jsonschema:"required"`
	// About says what would go wrong without the rule that the scenario shows.
	About string `yaml:"about"`
	// Seed of everything that is drawn; 0 if it is not given.
	Seed uint64 `yaml:"seed"`
	// Profile that the file runs under: reviewed unless it says otherwise.
	Profile string `yaml:"profile"`
	// Switches set one by one, over the profile's.
	Switches map[string]string `yaml:"switches"`
	// Cluster that is built.
	Cluster Cluster `yaml:"cluster,block"`
	// Users that have roles. A user without roles need not be declared.
	Users map[string]User `yaml:"users,block"`
	// Groups that exist from the start.
	Groups []Group `yaml:"groups,block"`
	// Rules that exist from the start.
	Rules []Rule `yaml:"rules,block"`
	// Load that arrives on its own.
	Load []Load `yaml:"load,block"`
	// Steps, in order of time; those of one instant start in file order and do not wait for one another.
	Steps []Step `yaml:"steps,deep"`
	// Expect lists expressions that are true at the end.
	Expect []Expression `yaml:"expect,block"`
	// Breaks names the promises that the run must break, all of them and no other.
	Breaks []Promise `yaml:"breaks"`
	// Under says what differs under another profile.
	Under map[string]Under `yaml:"under,deep"`
	// Explore asks for every interleaving of some actors.
	Explore *Explore `yaml:"explore,block"`

	origin *origin
}

// Cluster says what is built.
type Cluster struct {
	// Managers are the raft voters m1, m2 and so on: 3 unless the file says otherwise.
	Managers int `yaml:"managers" jsonschema:"minimum=1,maximum=9"`
	// Data nodes are d1, d2 and so on: 3 unless the file says otherwise.
	Data int `yaml:"data" jsonschema:"minimum=1,maximum=200"`
	// Storage of the raft log: memory unless the file says bolt.
	Storage string `yaml:"storage" jsonschema:"enum=memory,enum=bolt"`
	// Workers of each data node: 64 unless the file says otherwise.
	Workers int `yaml:"workers" jsonschema:"minimum=1,maximum=100000"`
	// Queue of each data node, in shard requests: 1000 unless the file says otherwise.
	Queue int `yaml:"queue" jsonschema:"minimum=1,maximum=1000000"`
	// Settings of the cluster. Workload management is enabled unless they say otherwise.
	Settings map[string]Setting `yaml:"settings"`
	// Network between the nodes, and between clients and nodes.
	Network Network `yaml:"network"`
	// Indices that exist from the start; one of a single shard, logs, if there are none.
	Indices map[string]Index `yaml:"indices,block"`
	// Delays drawn at every arrival at a step of a node.
	Delays map[string]Range `yaml:"delays"`
}

// Network says how messages travel.
type Network struct {
	// Latency of one message, one way: 1ms..5ms unless the file says otherwise.
	Latency *Range `yaml:"latency"`
	// Loss is the share of datagrams that get lost.
	Loss float64 `yaml:"loss" jsonschema:"minimum=0,maximum=1"`
	// Duplicate is the share of datagrams that arrive twice.
	Duplicate float64 `yaml:"duplicate" jsonschema:"minimum=0,maximum=1"`
	// Reorder is the share of datagrams that later ones may overtake.
	Reorder float64 `yaml:"reorder" jsonschema:"minimum=0,maximum=1"`
}

// Index is spread over the data nodes: shard s lives on the (s mod n)th by name.
type Index struct {
	// Shards of the index: 1 unless the file says otherwise.
	Shards int `yaml:"shards" jsonschema:"minimum=1,maximum=1024"`
	// ServiceTime of each shard for each search: 10ms unless the file says otherwise.
	ServiceTime *ServiceTime `yaml:"service_time"`
}

// ServiceTime is a fixed time, written 50ms, or a distribution to draw from.
// The zero value is a fixed 0s.
type ServiceTime struct {
	Fixed Duration `yaml:",scalar" jsonschema:"-"`
	// Exponential distribution.
	Exponential *Exponential `yaml:"exponential"`
	// Lognormal distribution.
	Lognormal *Lognormal `yaml:"lognormal"`
	// Pareto distribution: a heavy tail.
	Pareto *Pareto `yaml:"pareto"`
}

// Exponential is given by its mean.
type Exponential struct {
	// Mean of the distribution.
	Mean Duration `yaml:"mean" jsonschema:"required"`
}

// Lognormal is given by two quantiles.
type Lognormal struct {
	// P50 is the median.
	P50 Duration `yaml:"p50" jsonschema:"required"`
	// P99 is what 99 of 100 stay under; at least the median.
	P99 Duration `yaml:"p99" jsonschema:"required"`
}

// Pareto is given by its least value and its shape.
type Pareto struct {
	// Min is the least value.
	Min Duration `yaml:"min" jsonschema:"required"`
	// Alpha is the shape: the smaller, the heavier the tail; over 1, so that there is a mean.
	Alpha float64 `yaml:"alpha" jsonschema:"required,maximum=100"`
}

// User is a principal.
type User struct {
	// Roles of the user, in the order in which the authenticator lists them.
	Roles []string `yaml:"roles"`
}

// Group is a workload group.
type Group struct {
	// Name of the group: at most 50 characters.
	Name string `yaml:"name" jsonschema:"required"`
	// ResiliencyMode says how hard the limits are meant.
	ResiliencyMode cluster.ResiliencyMode `yaml:"resiliency_mode" jsonschema:"enum=soft,enum=enforced,enum=monitor"`
	// ResourceLimits gives shares of cpu and memory, over 0 up to 1.
	ResourceLimits map[string]float64 `yaml:"resource_limits"`
	// Settings for the searches of the group.
	Settings map[string]Setting `yaml:"settings"`
	// Throttling bounds the searches in flight on each node; {} in put_group removes it.
	Throttling *Throttling `yaml:"throttling"`
}

// Throttling is a bound on searches in flight.
type Throttling struct {
	// Attribute says whose searches share a bucket.
	Attribute cluster.Attribute `yaml:"attribute" jsonschema:"enum=group,enum=username,enum=role"`
	// NodeLimit is the size of a bucket on each node.
	NodeLimit int64 `yaml:"node_limit" jsonschema:"minimum=1,maximum=2147483647"`
}

// Rule gives searches to a group.
type Rule struct {
	// Name by which steps change or delete the rule.
	Name string `yaml:"name"`
	// WorkloadGroup is the name of the group.
	WorkloadGroup string `yaml:"workload_group" jsonschema:"required"`
	// IndexPatterns that a search's index must match one of.
	IndexPatterns []string `yaml:"index_pattern"`
	// Usernames of which the user must be one.
	Usernames []string `yaml:"principal.username"`
	// Roles of which the user must have one.
	Roles []string `yaml:"principal.role"`
}

// Load is a stream of searches.
type Load struct {
	// Name by which expressions know it, as load.NAME.
	Name string `yaml:"name" jsonschema:"required"`
	// User whose searches they are; without one they have no principal. A trace names its own.
	User string `yaml:"user"`
	// Group whose id the searches carry in the workloadGroupId header; without one the rules decide.
	Group string `yaml:"group"`
	// Index that is searched, as an OpenSearch expression; without one, all.
	Index string `yaml:"index"`
	// Via says which nodes take the searches: all unless the file says otherwise.
	Via Via `yaml:"via"`
	// Arrive says when searches arrive.
	Arrive Arrival `yaml:"arrive" jsonschema:"required"`
	// From is when the load begins.
	From Duration `yaml:"from"`
	// For is how long searches arrive. A trace ends by itself.
	For Duration `yaml:"for"`
	// ServiceTime of each shard, in place of the index's.
	ServiceTime *ServiceTime `yaml:"service_time"`
	// Timeout that the search asks for; without one, the cluster's.
	Timeout Duration `yaml:"timeout"`
	// AllowPartial says whether an answer may lack shards; without it, the cluster decides.
	AllowPartial *bool `yaml:"allow_partial"`
	// CancelAfter is when the client gives a search up; without it, never.
	CancelAfter Duration `yaml:"cancel_after"`
	// Retry says what the client does with an answer that it does not like.
	Retry *Retry `yaml:"retry"`
}

// Via chooses the node of each search: all of them in turn, a random one, a
// list in turn, or random by weight.
type Via struct {
	Mode    string             `yaml:",scalar" jsonschema:"-,enum=all,enum=random"`
	Nodes   []string           `yaml:",list" jsonschema:"-"`
	Weights map[string]float64 `yaml:",map" jsonschema:"-"`
}

// Arrival says when searches arrive: exactly one kind.
type Arrival struct {
	// Poisson arrivals, at random with this rate.
	Poisson Rate `yaml:"poisson"`
	// Constant arrivals, evenly spaced.
	Constant Rate `yaml:"constant"`
	// Burst of searches at one instant, again and again.
	Burst *Burst `yaml:"burst"`
	// Closed is a number of clients; each sends its next search once it has the answer.
	Closed int `yaml:"closed" jsonschema:"minimum=1,maximum=100000"`
	// Think is how long a client of closed waits before its next search.
	Think Duration `yaml:"think"`
	// Trace is a CSV file beside this one with the columns time, user, roles, index, service_time.
	Trace string `yaml:"trace"`
}

// Burst is many searches at one instant.
type Burst struct {
	// Size is how many arrive at once.
	Size int `yaml:"size" jsonschema:"required,minimum=1,maximum=1000000"`
	// Every is the time from one burst to the next.
	Every Duration `yaml:"every" jsonschema:"required"`
}

// Retry is a client's policy. A retry goes to the next node of via.
type Retry struct {
	// On lists the statuses that are tried again.
	On []int `yaml:"on" jsonschema:"required,minimum=400,maximum=599"`
	// Attempts at the most, the first one included.
	Attempts int `yaml:"attempts" jsonschema:"required,minimum=2,maximum=1000000"`
	// Backoff before the next attempt; without it, none.
	Backoff Backoff `yaml:"backoff"`
}

// Backoff is the time before the next attempt.
type Backoff struct {
	// Initial is the time before the second attempt.
	Initial Duration `yaml:"initial"`
	// Factor by which each time is longer than the last: 1 unless the file says otherwise.
	Factor float64 `yaml:"factor" jsonschema:"minimum=1,maximum=100"`
	// Max is the longest time; without it there is no bound but MaxTime.
	Max Duration `yaml:"max"`
	// Jitter draws the time: none, full (from 0 up to it), or equal (from half of it up to it).
	Jitter string `yaml:"jitter" jsonschema:"enum=none,enum=full,enum=equal"`
}

// Under is what a file asks for under another profile.
type Under struct {
	// Breaks names the promises that must break under it, all of them and no other.
	Breaks []Promise `yaml:"breaks"`
	// Expect replaces the file's.
	Expect []Expression `yaml:"expect,block"`
	// Forbid replaces that of explore.
	Forbid []Expression `yaml:"forbid,block"`
	// Require replaces that of explore.
	Require []Expression `yaml:"require,block"`
}

// Explore is a small program whose every interleaving is tried.
type Explore struct {
	// Node that is explored, the others being left out; without it, the whole cluster, of 5 nodes at the most.
	Node string `yaml:"node"`
	// Before runs first, in order, and is not explored.
	Before []Action `yaml:"before,block"`
	// Actors run side by side, each its actions in order.
	Actors Ordered[[]Action] `yaml:"actors,deep" jsonschema:"required"`
	// Together names actors whose changes reach the node as one version, as those of a snapshot do.
	Together []string `yaml:"together"`
	// Observe names the values that make up an outcome.
	Observe Ordered[Expression] `yaml:"observe,block" jsonschema:"required"`
	// Forbid lists expressions over the observed names that no schedule may make true.
	Forbid []Expression `yaml:"forbid,block"`
	// Require lists expressions over the observed names that some schedule must make true.
	Require []Expression `yaml:"require,block"`
}

// Expression is a formula over what happened; see [Env].
type Expression string

// Ordered is a mapping that keeps the order of the file.
type Ordered[T any] []Entry[T]

// Entry is one key of an [Ordered] and its value.
type Entry[T any] struct {
	Name  string
	Value T
}

// JSONSchemaAlias tells the schema that an Ordered is written as a mapping.
func (Ordered[T]) JSONSchemaAlias() any { return map[string]T(nil) }

func (Ordered[T]) ordered() {}

// Filled returns a copy of f in which every field that has a default and was
// not given has it.
func (f *File) Filled() *File {
	c := f.copied()
	fill(&c.Profile, "reviewed")
	c.Cluster.fill()
	for i := range c.Load {
		c.Load[i].fill()
	}
	for i := range c.Steps {
		c.Steps[i].fill("m1")
	}
	if c.Explore != nil {
		c.Explore.fill()
	}
	return c
}

func (c *Cluster) fill() {
	fill(&c.Managers, 3)
	fill(&c.Data, 3)
	fill(&c.Storage, "memory")
	fill(&c.Workers, 64)
	fill(&c.Queue, 1000)
	fill(&c.Network.Latency, &Range{Min: Duration(1e6), Max: Duration(5e6)})
	if c.Settings == nil {
		c.Settings = map[string]Setting{}
	}
	if _, given := c.Settings[cluster.SettingMode]; !given {
		c.Settings[cluster.SettingMode] = Setting(cluster.Enabled)
	}
	if len(c.Indices) == 0 {
		c.Indices = map[string]Index{"logs": {}}
	}
	for name, x := range c.Indices {
		x.fill()
		c.Indices[name] = x
	}
}

func (x *Index) fill() {
	fill(&x.Shards, 1)
	fill(&x.ServiceTime, &ServiceTime{Fixed: Duration(10e6)})
}

func (l *Load) fill() {
	if l.Via.Nodes == nil && l.Via.Weights == nil {
		fill(&l.Via.Mode, "all")
	}
	if l.Retry != nil {
		fill(&l.Retry.Backoff.Factor, 1)
		fill(&l.Retry.Backoff.Jitter, "none")
	}
}

func (e *Explore) fill() {
	via := e.Node
	fill(&via, "m1")
	for i := range e.Before {
		e.Before[i].fill(via)
	}
	for _, actor := range e.Actors {
		for i := range actor.Value {
			actor.Value[i].fill(via)
		}
	}
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// For returns f as it stands under a profile: the file's own, or one with what
// under: says in its place.
func (f *File) For(profile string) *File {
	c := f.copied()
	if profile == f.Filled().Profile {
		return c
	}
	c.Profile = profile
	u := f.Under[profile]
	c.Breaks = u.Breaks
	c.replace(profile, &c.Expect, "expect", u.Expect, "expect")
	if c.Explore != nil {
		c.replace(profile, &c.Explore.Forbid, "explore.forbid", u.Forbid, "forbid")
		c.replace(profile, &c.Explore.Require, "explore.require", u.Require, "require")
	}
	c.Under = nil
	return c
}

// replace puts the expressions that a profile gives in the place of the file's.
func (f *File) replace(profile string, field *[]Expression, path string, given []Expression, key string) {
	if given != nil {
		*field = given
		f.origin = f.origin.moved("under."+profile+"."+key, path)
	}
}
