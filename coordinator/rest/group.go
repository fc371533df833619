package rest

import (
	"slices"
	"strings"

	"github.com/wlmsim/wlmsim/cluster"
)

// groupBody is a group as a request gives it: absent, null and given are told
// apart where that makes a difference.
type groupBody struct {
	form       cluster.DimensionKey
	name       string
	named      bool
	mode       string
	limits     map[string]float64 // nil: absent
	settings   cluster.SettingsPatch
	throttling cluster.ThrottlingPatch
}

// parseGroup reads the body of a create or an update. As upstream, null is
// heeded only for settings and throttling; _id and updated_at are taken and
// overwritten.
func parseGroup(data []byte, form cluster.DimensionKey) (*groupBody, error) {
	g := &groupBody{form: form}
	err := readBody(data, g.member)
	return g, err
}

func (g *groupBody) member(f *fields, name string) (err error) {
	switch name {
	case "name", "resiliency_mode", "_id", "updated_at":
		if !f.scalar() {
			return notValid(f, name, "object")
		}
	case "resource_limits", "settings", "throttling":
		if k := f.kind(); k != 'n' && k != '{' {
			return f.refuse("an object")
		}
	default:
		if f.scalar() {
			return notValid(f, name, "field")
		}
		return notValid(f, name, "object")
	}
	switch name {
	case "settings":
		return g.readSettings(f)
	case "throttling":
		return g.readThrottling(f)
	}
	if f.null() {
		return nil
	}
	switch name {
	case "name":
		g.named = true
		g.name, err = f.text()
	case "resiliency_mode":
		if g.mode, err = f.text(); err == nil && g.mode == "" {
			err = cluster.Errorf(cluster.IllegalArgument, "Invalid value for WorkloadGroupMode: ''")
		}
	case "resource_limits":
		return g.readLimits(f)
	default:
		err = f.skip()
	}
	return err
}

// notValid refuses a member, once its text is known to be JSON.
func notValid(f *fields, name, what string) error {
	if err := f.skip(); err != nil {
		return err
	}
	return cluster.Errorf(cluster.IllegalArgument, "%s is not a valid %s in WorkloadGroup", shorten(name), what)
}

func (g *groupBody) readLimits(f *fields) error {
	g.limits = map[string]float64{}
	return f.object(f.path, func(f *fields, resource string) error {
		limit, err := f.coerced()
		g.limits[resource] = limit
		return err
	})
}

func (g *groupBody) readSettings(f *fields) error {
	if f.null() {
		g.settings.Clear = true
		return nil
	}
	g.settings.Set = map[string]*string{}
	err := f.flat(func(f *fields, key string) error {
		if f.null() {
			g.settings.Set[key] = nil
			return nil
		}
		value, err := f.word()
		g.settings.Set[key] = &value
		return err
	})
	g.settings.Clear = len(g.settings.Set) == 0
	return err
}

func (g *groupBody) readThrottling(f *fields) error {
	if f.null() {
		g.throttling.Clear = true
		return nil
	}
	patch := &g.throttling
	patch.Clear = true // unless a key is given
	return f.object(f.path, func(f *fields, key string) error {
		switch key {
		case string(g.form):
			patch.Clear = false
			return readDimension(f, g.form, g.form.PatchField(patch))
		case "node_limit":
			patch.Clear = false
			return readNodeLimit(f, g.form, patch)
		}
		if err := f.skip(); err != nil {
			return err
		}
		return cluster.UnknownThrottleSetting(shorten(key))
	})
}

func readDimension(f *fields, form cluster.DimensionKey, field *cluster.Optional[cluster.Attribute]) error {
	if f.null() {
		*field = cluster.Null[cluster.Attribute]()
		return nil
	}
	text, err := f.word()
	if err != nil {
		return err
	}
	*field = cluster.Give(cluster.Attribute(text))
	return form.CheckDimension(cluster.Attribute(shorten(text)))
}

// readNodeLimit reads a limit in the profile's form; 0 is refused where the
// merged throttling is looked at.
func readNodeLimit(f *fields, form cluster.DimensionKey, patch *cluster.ThrottlingPatch) error {
	if f.null() {
		patch.NodeLimit = cluster.Null[int64]()
		return nil
	}
	number := f.kind() == '0'
	text, err := f.literal()
	if err != nil {
		return err
	}
	limit, err := form.ParseLimit(text, shorten(text), number)
	if err != nil {
		return err
	}
	patch.NodeLimit = cluster.Give(limit)
	return nil
}

// create returns the command that makes the group. Null-valued keys are
// dropped, as upstream drops them.
func (g *groupBody) create(id string, now int64) (*cluster.CreateGroup, error) {
	for _, part := range []struct {
		name    string
		missing bool
	}{{"name", !g.named}, {"resiliencyMode", g.mode == ""}, {"resourceLimits", g.limits == nil}} {
		if part.missing {
			return nil, cluster.Errorf(cluster.NullPointer, "WorkloadGroup.%s can't be null", part.name)
		}
	}
	return &cluster.CreateGroup{Group: cluster.Group{
		ID: id, Name: g.name, ResiliencyMode: resiliencyMode(g.mode), ResourceLimits: g.limits,
		Settings: g.settings.Merge(nil), Throttling: g.throttling.Merge(nil), UpdatedAt: now,
	}, Form: g.form.Short()}, nil
}

// update returns the command that merges the body into the group of a name.
func (g *groupBody) update(name string, now int64) *cluster.UpdateGroup {
	return &cluster.UpdateGroup{
		Name: name, ResiliencyMode: resiliencyMode(g.mode), ResourceLimits: g.limits,
		Settings: g.settings, Throttling: g.throttling, UpdatedAt: now, Form: g.form.Short(),
	}
}

// resiliencyMode matches a mode without regard to case. A text that is no mode
// stays as it is, for the message.
func resiliencyMode(text string) cluster.ResiliencyMode {
	for _, m := range []cluster.ResiliencyMode{cluster.Soft, cluster.Enforced, cluster.Monitor} {
		if strings.EqualFold(text, string(m)) {
			return m
		}
	}
	return cluster.ResiliencyMode(text)
}

// managed refuses to change groups while this node's mode is not enabled, or
// while the node has not caught up and so does not know the mode.
func (c *call) managed(operation string) error {
	if err := c.ready(); err != nil {
		return err
	}
	if c.config.Cluster.State().Mode() == cluster.Enabled {
		return nil
	}
	return cluster.Errorf(cluster.IllegalState, "Cannot %s workload group because workload management mode is disabled or monitor_only."+
		"To enable this feature, set [%s] to 'enabled' in cluster settings.", operation, cluster.SettingMode)
}

func (c *call) createGroup() error {
	if err := c.managed("create"); err != nil {
		return err
	}
	body, err := c.groupBody()
	if err != nil {
		return err
	}
	command, err := body.create(c.config.Cluster.NewID(), c.config.Cluster.Now().UnixMilli())
	if err != nil {
		return err
	}
	return c.answerGroup(command)
}

func (c *call) updateGroup() error {
	if err := c.managed("update"); err != nil {
		return err
	}
	body, err := c.groupBody()
	if err != nil {
		return err
	}
	return c.answerGroup(body.update(c.vars.get("name"), c.config.Cluster.Now().UnixMilli()))
}

func (c *call) groupBody() (*groupBody, error) {
	data, err := c.body()
	if err != nil {
		return nil, err
	}
	return parseGroup(data, c.config.Dimension)
}

func (c *call) answerGroup(command cluster.Command) error {
	result, err := c.propose(command)
	if err != nil {
		return err
	}
	c.out.group(result.Group)
	return nil
}

func (c *call) deleteGroup() error {
	if err := c.managed("delete"); err != nil {
		return err
	}
	return c.acknowledge(&cluster.DeleteGroup{Name: c.vars.get("name")})
}

func (c *call) listGroups() error {
	groups, err := c.groups()
	if err != nil {
		return err
	}
	c.out.groups(c.groupsKey, groups)
	return nil
}

func (c *call) getGroup() error {
	groups, err := c.groups()
	if err != nil {
		return err
	}
	name := c.vars.get("name")
	i := slices.IndexFunc(groups, func(g *cluster.Group) bool { return g.Name == name })
	if i < 0 {
		return cluster.Errorf(cluster.ResourceNotFound, "No WorkloadGroup exists with the provided name: %s", shorten(name))
	}
	c.out.groups(c.groupsKey, groups[i:i+1])
	return nil
}

// groups returns the leader's groups, or with ?local those published here.
func (c *call) groups() ([]*cluster.Group, error) {
	if err := c.ready(); err != nil {
		return nil, err
	}
	local, err := c.flag("local", false)
	if err != nil {
		return nil, err
	}
	if local {
		return c.config.Cluster.State().Groups(), nil
	}
	return c.config.Cluster.Groups(c.r.Context())
}

func (e *encoder) groups(key string, groups []*cluster.Group) {
	e.object(func() {
		e.name(key).array(func() {
			for _, g := range groups {
				e.group(g)
			}
		})
	})
}

// group writes a group in the order of OpenSearch's fields.
func (e *encoder) group(g *cluster.Group) {
	e.object(func() {
		e.name("_id").text(g.ID)
		e.name("name").text(g.Name)
		e.name("resiliency_mode").text(string(g.ResiliencyMode))
		e.name("resource_limits").object(func() {
			for _, resource := range []string{"cpu", "memory"} {
				if limit, ok := g.ResourceLimits[resource]; ok {
					e.name(resource).double(limit)
				}
			}
		})
		e.name("settings").object(func() { e.sorted(g.Settings) })
		if t := g.Throttling; t != nil {
			e.name("throttling").object(func() { e.throttling(t) })
		}
		e.name("updated_at").integer(g.UpdatedAt)
	})
}

func (e *encoder) throttling(t *cluster.Throttling) {
	if t.Attribute != "" {
		e.name("attribute").text(string(t.Attribute))
	}
	if t.By != "" {
		e.name("by").text(string(t.By))
	}
	if t.NodeLimit != nil {
		e.name("node_limit").integer(*t.NodeLimit)
	}
}
