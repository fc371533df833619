package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/cluster/task"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/wlm"
)

// Cluster is what the API needs of its node and of the cluster behind it. All
// methods may be called from any goroutine.
type Cluster interface {
	// State returns the state that is published on this node.
	State() *cluster.State
	// Propose has the leader carry out a command and waits until every live
	// node has applied it, or the publish timeout is over. A refusal is a
	// *cluster.Error; of kind OutcomeUnknown if nobody can say whether the
	// command was committed.
	Propose(ctx context.Context, c cluster.Command) (*Result, error)
	// Groups returns the groups as the leader has them after it verified that
	// it still leads, sorted by id.
	Groups(ctx context.Context) ([]*cluster.Group, error)
	// Status returns what this node knows of itself and the others. It asks
	// nobody.
	Status() Status
	// Refresh asks the live members which version they have applied, for the
	// next Status; one that does not answer in a second keeps its old one.
	Refresh(ctx context.Context)
	// NodeStats asks nodes, by name, for the counters of groups, by id; an
	// empty list means all. Answers and failures are sorted by node.
	NodeStats(ctx context.Context, nodes, groups []string) ([]NodeStats, []NodeFailure)
	// Tasks asks nodes, by name, for their tasks, or has them cancelled; an
	// empty list means all. Answers and failures are sorted by node.
	Tasks(ctx context.Context, nodes []string, q TaskQuery) ([]NodeTasks, []NodeFailure)
	// NewID returns a fresh id of 22 URL-safe characters.
	NewID() string
	// Now returns the time to stamp a command with.
	Now() time.Time
}

// Searcher runs searches; a *coordinator.Coordinator is one.
type Searcher interface {
	Search(ctx context.Context, r coordinator.Request) (*coordinator.Response, error)
}

// Contexts opens and ends what outlives a search; a *coordinator.Coordinator is
// one.
type Contexts interface {
	ClearScrolls(ctx context.Context, ids []string) (freed int, err error)
	OpenPoint(ctx context.Context, r coordinator.PointRequest) (*coordinator.Point, error)
	FreePoints(ctx context.Context, ids []string) ([]coordinator.FreedPoint, error)
	Points(ctx context.Context) ([]wire.Point, error)
}

// TaskQuery chooses tasks, and says whether to cancel them.
type TaskQuery struct {
	task.Filter
	Cancel bool   `json:"cancel,omitempty"`
	Reason string `json:"reason,omitempty"` // of a cancellation
	Wait   bool   `json:"wait,omitempty"`   // answer once the cancelled ones are over
}

// NodeTasks are the tasks of one node, by number.
type NodeTasks struct {
	Node, ID string
	Tasks    []task.Info
}

// Result is what came of a command. The entry that it made or changed is given
// for the commands that have one.
type Result struct {
	Version      uint64 // of the state that the command made
	Acknowledged bool   // every live node applied it in time
	Group        *cluster.Group
	Rule         *cluster.Rule
	Index        *cluster.Index
}

// Status is what a node knows of itself and of the others.
type Status struct {
	Node, ID     string
	Version      uint64 // published here
	RulesVersion uint64 // of the state that this node's view of the rules is from
	Leader       string // name; "" if none is known
	Ready        bool   // the node has caught up since its start; once true it stays so
	Members      []Member
	PendingTasks int // commands proposed here that have no answer yet
}

// Member is a node as another one sees it.
type Member struct {
	Name, ID            string
	Address, HTTP, Raft string // host:port of gossip, HTTP and raft
	Roles               []cluster.Role
	AppliedVersion      uint64 // the last that this node heard of
	Alive               bool
}

// NodeStats are the counters of one node's groups, sorted by group id.
type NodeStats struct {
	Node, ID string
	Groups   []wlm.GroupStats
}

// NodeFailure says why a node has no NodeStats.
type NodeFailure struct {
	Node, ID string
	Err      *cluster.Error
}

// Config is what a [Handler] is made from.
type Config struct {
	Cluster  Cluster  // required
	Searcher Searcher // required
	Contexts Contexts // required
	// Tasks lists multi-searches while they run; nil: nobody does. It is the one
	// of the searcher.
	Tasks *task.Registry

	// Permits and Outcomes are shown by /_wlmsim/state; both required.
	Permits  func() []wlm.GroupPermits
	Outcomes func() []coordinator.GroupOutcomes

	ClusterName string // default "wlmsim"
	Version     string // version number at /; default "3.9.0", the generation whose API this is

	// Dimension is the form of the groups' throttling; default KeyAttribute.
	Dimension cluster.DimensionKey

	// Pool returns how busy the node's workers are; nil: the node has none to
	// show.
	Pool func() Pool
	// QueryGroupAlias serves workload groups also under the name that they had
	// before OpenSearch 3.0, for clients that know no other: the paths
	// /_wlm/query_group, query_groups in answers, the header
	// [HeaderQueryGroup], and settings that begin with wlm.query_group or
	// node.query_group.
	QueryGroupAlias bool

	// NoPrincipals takes nobody's name, as OpenSearch does without its security
	// plugin. It excludes Users.
	NoPrincipals bool
	// Users, if not nil, are the only ones who may use the API, by basic
	// auth. nil takes any name with any password.
	Users map[string]User
	// AllowHolds opens PUT and DELETE of /_wlmsim/holds, which then needs Holds.
	AllowHolds bool
	Holds      *probe.Holds
	// Canary returns the token that goes with the next principal, for the
	// check that no message between nodes carries one; nil: none.
	Canary func() string
	Probe  *probe.Probe // nil: no steps
	Log    *slog.Logger // default: discards
}

func (c *Config) fillDefaults() {
	if c.ClusterName == "" {
		c.ClusterName = "wlmsim"
	}
	if c.Version == "" {
		c.Version = "3.9.0"
	}
	if c.Dimension == "" {
		c.Dimension = cluster.KeyAttribute
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

// check reports everything that is wrong with the configuration.
func (c *Config) check() error {
	var faults []error
	for _, part := range []struct {
		name    string
		missing bool
	}{
		{"Cluster", c.Cluster == nil}, {"Searcher", c.Searcher == nil}, {"Contexts", c.Contexts == nil}, {"Permits", c.Permits == nil},
		{"Outcomes", c.Outcomes == nil}, {"Holds, which AllowHolds needs,", c.AllowHolds && c.Holds == nil},
	} {
		if part.missing {
			faults = append(faults, fmt.Errorf("rest: %s is missing", part.name))
		}
	}
	if c.NoPrincipals && c.Users != nil {
		faults = append(faults, errors.New("rest: NoPrincipals and Users exclude each other"))
	}
	return errors.Join(append(faults, CheckUsers(c.Users))...)
}

// CheckUsers reports everything that is wrong with users: names and roles that
// no request can carry, and hashes that are none.
func CheckUsers(users map[string]User) error {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(users)) {
		faults = append(faults, checkUser(name, users[name])...)
	}
	return errors.Join(faults...)
}

func checkUser(name string, u User) (faults []error) {
	if name == "" || len(name) > MaxName {
		faults = append(faults, fmt.Errorf("user %q has a name of %d bytes: 1 to %d", shorten(name), len(name), MaxName))
	}
	if _, err := bcrypt.Cost(u.PasswordHash); err != nil {
		faults = append(faults, fmt.Errorf("user %q has no bcrypt hash: %w", shorten(name), err))
	}
	if len(u.Roles) > MaxRoles {
		faults = append(faults, fmt.Errorf("user %q has %d roles: at most %d", shorten(name), len(u.Roles), MaxRoles))
	}
	for _, role := range u.Roles {
		if role == "" || len(role) > MaxName {
			faults = append(faults, fmt.Errorf("user %q has a role with a name of %d bytes: 1 to %d", shorten(name), len(role), MaxName))
		}
	}
	return faults
}
