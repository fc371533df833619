package cluster

import (
	"slices"
	"strconv"
	"strings"
)

// Command is one change of the state, stamped with ids and times by the node
// that took the request. The concrete types are in this file.
type Command interface {
	// Validate refuses, with OpenSearch's message, what a client may not
	// write whatever the state is. The node that takes a request calls it,
	// and the leader again before it proposes.
	Validate() error
	// apply changes the draft, a copy that nobody else has seen, or refuses.
	apply(draft *State) error
	kind() string
}

// CreateGroup makes a new workload group.
type CreateGroup struct {
	Group Group        `json:"group"`
	Form  DimensionKey `json:"form,omitempty"` // of the group's throttling
}

// UpdateGroup merges a patch into the group of a name.
type UpdateGroup struct {
	Name           string             `json:"name"`
	ResiliencyMode ResiliencyMode     `json:"resiliency_mode,omitempty"` // "" keeps it
	ResourceLimits map[string]float64 `json:"resource_limits,omitzero"`  // given ones overwrite
	Settings       SettingsPatch      `json:"settings,omitzero"`
	Throttling     ThrottlingPatch    `json:"throttling,omitzero"`
	UpdatedAt      int64              `json:"updated_at"`
	Form           DimensionKey       `json:"form,omitempty"` // of the patch, and of what comes of it
}

// DeleteGroup removes the group of a name, unless rules point to it.
type DeleteGroup struct {
	Name string `json:"name"`
}

// PutSettings changes the cluster's settings.
type PutSettings struct {
	SettingsChange
}

// CreateRule makes a new rule for an existing group.
type CreateRule struct {
	Rule Rule `json:"rule"`
}

// UpdateRule overwrites what is given of the rule of an id.
type UpdateRule struct {
	ID            string   `json:"id"`
	Description   string   `json:"description,omitempty"`    // "" keeps it
	WorkloadGroup string   `json:"workload_group,omitempty"` // "" keeps it
	IndexPatterns []string `json:"index_pattern,omitzero"`   // nil keeps it
	Usernames     []string `json:"principal.username,omitzero"`
	Roles         []string `json:"principal.role,omitzero"`
	UpdatedAt     int64    `json:"updated_at"`
}

// DeleteRule removes the rule of an id.
type DeleteRule struct {
	ID string `json:"id"`
}

// CreateIndex makes an index and spreads its shards: shard s goes to the
// (s mod n)th data node by name.
type CreateIndex struct {
	Name        string      `json:"name"`
	UUID        string      `json:"uuid"`
	Shards      int         `json:"shards"`
	ServiceTime ServiceTime `json:"service_time,omitzero"`
	CreatedAt   int64       `json:"created_at"`
}

// DeleteIndex removes the index of a name.
type DeleteIndex struct {
	Name string `json:"name"`
}

// PutNode adds a node or replaces the one of its name.
type PutNode struct {
	Node Node `json:"node"`
}

// RemoveNode takes a node out. Shards that lived on it are lost.
type RemoveNode struct {
	Name string `json:"name"`
}

// Apply returns the state after a command that is not nil, or why it is
// refused; then the caller keeps s. The two states share what did not change,
// and neither shares memory with the command. See promise 1.
func Apply(s *State, c Command) (*State, error) {
	draft := *s
	if err := c.apply(&draft); err != nil {
		return nil, err
	}
	draft.version++
	return &draft, nil
}

// Validate implements [Command].
func (c *CreateGroup) Validate() error { return firstOf(c.Group.checks(c.Form)...) }

func (c *CreateGroup) apply(s *State) error {
	g := c.Group.clone()
	if most := int(s.settings.number(SettingMaxGroups)); len(s.groups) == most {
		return Errorf(IllegalState, "Can't create more than %d WorkloadGroups in the system.", most)
	}
	if s.GroupNamed(g.Name) != nil {
		return Errorf(IllegalArgument, "WorkloadGroup with name %s already exists. Not creating a new one.", g.Name)
	}
	if g.ID == DefaultGroupID || s.Group(g.ID) != nil {
		return Errorf(IllegalArgument, "WorkloadGroup with id %s already exists. Not creating a new one.", g.ID)
	}
	if err := s.checkSum(g); err != nil {
		return err
	}
	s.setGroups(with(s.groups, g, groupKey))
	return nil
}

// Validate implements [Command].
func (c *UpdateGroup) Validate() error {
	if c.ResiliencyMode != "" {
		if err := checkMode(c.ResiliencyMode); err != nil {
			return err
		}
	}
	return firstOf(checkLimits(c.ResourceLimits), c.Settings.check(), c.Form.checkPatch(c.Throttling))
}

func (c *UpdateGroup) apply(s *State) error {
	old := s.GroupNamed(c.Name)
	if old == nil {
		return noGroup(c.Name)
	}
	g := old.clone()
	if c.ResiliencyMode != "" {
		g.ResiliencyMode = c.ResiliencyMode
	}
	if len(c.ResourceLimits) > 0 && g.ResourceLimits == nil {
		g.ResourceLimits = map[string]float64{}
	}
	for resource, limit := range c.ResourceLimits {
		g.ResourceLimits[resource] = limit
	}
	g.Settings = c.Settings.Merge(g.Settings)
	g.Throttling = c.Throttling.Merge(g.Throttling)
	g.UpdatedAt = c.UpdatedAt
	if err := c.Form.Check(g.Throttling); err != nil {
		return err
	}
	if err := s.checkSum(&Group{Name: g.Name, ResourceLimits: c.ResourceLimits}); err != nil {
		return err
	}
	s.setGroups(with(s.groups, g, groupKey))
	return nil
}

// Validate implements [Command].
func (c *DeleteGroup) Validate() error { return nil }

func (c *DeleteGroup) apply(s *State) error {
	g := s.GroupNamed(c.Name)
	if g == nil {
		return noGroup(c.Name)
	}
	if rules := s.rulesOf(g.ID); len(rules) > 0 {
		return Errorf(IllegalArgument, "WorkloadGroup %s cannot be deleted because rules still point to it: [%s]. Delete these rules or point them to another group first.", g.Name, listed(rules))
	}
	s.setGroups(without(s.groups, g.ID, groupKey))
	return nil
}

// maxListed bounds how many ids a message lists.
const maxListed = 10

// listed writes ids for a message.
func listed(ids []string) string {
	if more := len(ids) - maxListed; more > 0 {
		return strings.Join(ids[:maxListed], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(ids, ", ")
}

// rulesOf returns the ids of the rules that point to a group, sorted.
func (s *State) rulesOf(group string) []string {
	var ids []string
	for _, r := range s.rules {
		if r.WorkloadGroup == group {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// Validate implements [Command]. Keys that a running cluster cannot change are
// refused by the API, not here: a new cluster is given them by this command.
func (c *PutSettings) Validate() error { return c.SettingsChange.Validate(false) }

func (c *PutSettings) apply(s *State) error {
	next, err := s.settings.merge(c.SettingsChange)
	if err != nil {
		return err
	}
	s.setSettings(next)
	return nil
}

// Validate implements [Command].
func (c *CreateRule) Validate() error { return c.Rule.Check() }

func (c *CreateRule) apply(s *State) error {
	if most := s.settings.number(SettingMaxRules); int64(len(s.rules)) >= most {
		return Errorf(TooMany, "This create operation will violate the cardinality limit of %d. Please delete some stale or redundant rules first", most)
	}
	if s.Rule(c.Rule.ID) != nil {
		return Errorf(IllegalArgument, "Rule with ID %s already exists.", c.Rule.ID)
	}
	return s.putRule(c.Rule.clone())
}

// Validate implements [Command].
func (c *UpdateRule) Validate() error {
	r := Rule{Description: c.Description, WorkloadGroup: c.WorkloadGroup, IndexPatterns: c.IndexPatterns, Usernames: c.Usernames, Roles: c.Roles}
	if r.Description == "" {
		r.Description = "kept"
	}
	if r.WorkloadGroup == "" {
		r.WorkloadGroup = "kept"
	}
	if r.IndexPatterns == nil && r.Usernames == nil && r.Roles == nil {
		r.Usernames = []string{"kept"}
	}
	return r.Check()
}

func (c *UpdateRule) apply(s *State) error {
	old := s.Rule(c.ID)
	if old == nil {
		return noRule(c.ID)
	}
	r := old.clone()
	r.UpdatedAt = c.UpdatedAt
	if c.Description != "" {
		r.Description = c.Description
	}
	if c.WorkloadGroup != "" {
		r.WorkloadGroup = c.WorkloadGroup
	}
	if c.IndexPatterns != nil {
		r.IndexPatterns = slices.Clone(c.IndexPatterns)
	}
	if c.Usernames != nil {
		r.Usernames = slices.Clone(c.Usernames)
	}
	if c.Roles != nil {
		r.Roles = slices.Clone(c.Roles)
	}
	return s.putRule(r)
}

// putRule stores a rule whose group exists and whose requirements no other
// rule has.
func (s *State) putRule(r *Rule) error {
	if s.Group(r.WorkloadGroup) == nil {
		return Errorf(IllegalArgument, "%s is not a valid workload group id", r.WorkloadGroup)
	}
	for _, other := range s.rules {
		if other.ID != r.ID && other.sameRequirements(r) {
			return Errorf(IllegalArgument, "Duplicate rule exists under id %s", other.ID)
		}
	}
	s.rules = with(s.rules, r, ruleKey)
	return nil
}

// Validate implements [Command].
func (c *DeleteRule) Validate() error { return nil }

func (c *DeleteRule) apply(s *State) error {
	if s.Rule(c.ID) == nil {
		return noRule(c.ID)
	}
	s.rules = without(s.rules, c.ID, ruleKey)
	return nil
}

// Validate implements [Command].
func (c *CreateIndex) Validate() error {
	if err := checkIndexName(c.Name); err != nil {
		return err
	}
	if c.Shards < 1 || c.Shards > MaxShards {
		return Errorf(IllegalArgument, "Failed to parse value [%d] for setting [index.number_of_shards] must be >= 1 and <= %d", c.Shards, MaxShards)
	}
	if err := c.ServiceTime.Check(); err != nil {
		return Errorf(IllegalArgument, "index.wlmsim.service_time: %v", err)
	}
	return nil
}

func (c *CreateIndex) apply(s *State) error {
	if old := s.Index(c.Name); old != nil {
		return Errorf(ResourceExists, "index [%s/%s] already exists", c.Name, old.UUID)
	}
	if c.Shards < 1 || c.Shards > MaxShards { // a bound on memory, whatever the log holds
		return Errorf(IllegalArgument, "index [%s] cannot have %d shards: 1 to %d", c.Name, c.Shards, MaxShards)
	}
	var holders []string
	for _, n := range s.nodes {
		if n.Has(Data) {
			holders = append(holders, n.Name)
		}
	}
	if len(holders) == 0 {
		return Errorf(ClusterBlock, "index [%s] cannot be created: the cluster has no data node yet", c.Name)
	}
	x := &Index{Name: c.Name, UUID: c.UUID, ServiceTime: c.ServiceTime, CreatedAt: c.CreatedAt, ShardNodes: make([]string, c.Shards)}
	for shard := range x.ShardNodes {
		x.ShardNodes[shard] = holders[shard%len(holders)]
	}
	s.indices = with(s.indices, x, indexKey)
	return nil
}

// Validate implements [Command].
func (c *DeleteIndex) Validate() error { return nil }

func (c *DeleteIndex) apply(s *State) error {
	if s.Index(c.Name) == nil {
		return Errorf(IndexNotFound, "no such index [%s]", c.Name)
	}
	s.indices = without(s.indices, c.Name, indexKey)
	return nil
}

// Validate implements [Command].
func (c *PutNode) Validate() error {
	if c.Node.Name == "" || c.Node.ID == "" {
		return Errorf(IllegalArgument, "a node needs a name and an id but had [%s] and [%s]", c.Node.Name, c.Node.ID)
	}
	for _, r := range c.Node.Roles {
		if r != Manager && r != Data {
			return Errorf(IllegalArgument, "unknown role [%s]: one of [%s, %s]", r, Manager, Data)
		}
	}
	return nil
}

func (c *PutNode) apply(s *State) error {
	n := c.Node
	n.Roles = slices.Clone(n.Roles)
	s.nodes = with(s.nodes, &n, nodeKey)
	return nil
}

// Validate implements [Command].
func (c *RemoveNode) Validate() error { return nil }

func (c *RemoveNode) apply(s *State) error {
	if s.Node(c.Name) == nil {
		return Errorf(ResourceNotFound, "no node is named [%s]", c.Name)
	}
	s.nodes = without(s.nodes, c.Name, nodeKey)
	return nil
}

// checkSum refuses a group whose limits, with those of all other groups, pass
// the whole of a resource. As upstream it looks only at the resources that the
// request names. It adds in the order of ids, so that every node gets the same
// sum.
func (s *State) checkSum(g *Group) error {
	for _, resource := range []string{"cpu", "memory"} {
		sum, named := g.ResourceLimits[resource]
		if !named {
			continue
		}
		for _, other := range s.groups {
			if other.Name != g.Name {
				sum += other.ResourceLimits[resource]
			}
		}
		if sum > 1 {
			return Errorf(IllegalArgument, "Total resource allocation for %s will go above the max limit of 1.0.", resource)
		}
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func noGroup(name string) error {
	return Errorf(ResourceNotFound, "No WorkloadGroup exists with the provided name: %s", name)
}

func noRule(id string) error { return Errorf(ResourceNotFound, "Rule with ID %s not found.", id) }
