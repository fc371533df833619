package cluster

import (
	"fmt"
	"strings"
	"time"
)

// MaxShards is the greatest number of shards of an index, as in OpenSearch.
const MaxShards = 1024

// Role is what a node does for the cluster.
type Role string

// The roles of a node.
const (
	Manager Role = "cluster_manager" // a raft voter
	Data    Role = "data"            // holds shards
)

// Node is a member of the cluster as the state knows it. Nodes enter when they
// join and leave when they are taken out, not when they are out of reach.
type Node struct {
	Name  string `json:"name"` // unique
	ID    string `json:"id"`   // 22 URL-safe characters, kept across restarts
	Roles []Role `json:"roles"`
}

// Has says whether the node has a role.
func (n *Node) Has(role Role) bool {
	for _, r := range n.Roles {
		if r == role {
			return true
		}
	}
	return false
}

// Index is an index as the state holds it: its shards live on data nodes that
// were fixed when it was created, and each has one copy.
type Index struct {
	Name        string      `json:"name"`
	UUID        string      `json:"uuid"`
	ServiceTime ServiceTime `json:"service_time"`
	ShardNodes  []string    `json:"shard_nodes"` // shard s lives on ShardNodes[s]
	CreatedAt   int64       `json:"created_at"`  // epoch milliseconds
}

// Shards returns the number of the index's shards.
func (x *Index) Shards() int { return len(x.ShardNodes) }

// Distribution names how a shard's service time is drawn.
type Distribution string

// The distributions of service time.
const (
	Constant    Distribution = "constant"    // always Mean
	Exponential Distribution = "exponential" // with Mean
	LogNormal   Distribution = "lognormal"   // with the quantiles P50 and P99
	Uniform     Distribution = "uniform"     // between Min and Max
	Pareto      Distribution = "pareto"      // from Min on, with the shape Alpha
)

// ServiceTime says how long one shard works on one search. Fields that the
// distribution does not name are zero. The zero value is no work at all.
type ServiceTime struct {
	Distribution Distribution  `json:"distribution,omitempty"`
	Mean         time.Duration `json:"mean,omitempty"` // nanoseconds in JSON, like the others
	P50          time.Duration `json:"p50,omitempty"`
	P99          time.Duration `json:"p99,omitempty"`
	Min          time.Duration `json:"min,omitempty"`
	Max          time.Duration `json:"max,omitempty"`
	Alpha        float64       `json:"alpha,omitempty"` // the smaller, the heavier the tail
}

// MaxServiceTime bounds every part of a service time.
const MaxServiceTime = 24 * time.Hour

// Check returns what is wrong with t, or nil.
func (t ServiceTime) Check() error {
	for _, d := range []time.Duration{t.Mean, t.P50, t.P99, t.Min, t.Max} {
		if d < 0 || d > MaxServiceTime {
			return fmt.Errorf("service time %v is out of bounds: 0s to %v", d, MaxServiceTime)
		}
	}
	switch t.Distribution {
	case "", Constant, Exponential:
		return nil
	case LogNormal:
		if t.P50 <= 0 || t.P99 < t.P50 {
			return fmt.Errorf("a lognormal service time needs 0s < p50 <= p99 but p50 was %v and p99 was %v", t.P50, t.P99)
		}
		return nil
	case Uniform:
		if t.Max < t.Min {
			return fmt.Errorf("a uniform service time needs min <= max but min was %v and max was %v", t.Min, t.Max)
		}
		return nil
	case Pareto:
		if t.Min <= 0 || !(t.Alpha > 1) {
			return fmt.Errorf("a pareto service time needs min over 0s and alpha over 1, so that it has a mean, but min was %v and alpha was %v", t.Min, t.Alpha)
		}
		return nil
	}
	return fmt.Errorf("service time distribution %q is unknown: one of constant, exponential, lognormal, uniform, pareto", t.Distribution)
}

// checkIndexName holds OpenSearch's rules for names of indices.
func checkIndexName(name string) error {
	why := ""
	switch {
	case name == "" || name == "." || name == "..":
		why = "must not be empty, '.' or '..'"
	case len(name) > 255:
		why = fmt.Sprintf("index name is too long, (%d > 255)", len(name))
	case strings.ToLower(name) != name:
		why = "must be lowercase"
	case strings.ContainsAny(name, "\\/*?\"<>| ,#:"):
		why = `must not contain the following characters [ , ", *, \, <, |, ,, >, /, ?, #, :]`
	case strings.ContainsAny(name[:1], "_-+"):
		why = "must not start with '_', '-', or '+'"
	}
	if why != "" {
		return Errorf(IllegalArgument, "Invalid index name [%s], %s", name, why)
	}
	return nil
}
