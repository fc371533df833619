package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/sim/node"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

// PlacesOf are the nodes of a filled scenario file: managers and data nodes,
// each with its one role.
func PlacesOf(f *scenario.File) []Place {
	var places []Place
	for i, name := range world.NodeNames(f) {
		role := cluster.Manager
		if i >= f.Cluster.Managers {
			role = cluster.Data
		}
		places = append(places, Place{name, []cluster.Role{role}})
	}
	return places
}

// Furnish makes the indices, groups and rules of a filled scenario file in a
// new cluster. It returns the groups' ids by name.
func (c *Cluster) Furnish(ctx context.Context, f *scenario.File) (groups map[string]string, err error) {
	seed := randomSeed()
	id := func() string { seed++; return node.NewID(seed) }
	now := time.Now().UnixMilli()
	for _, name := range slices.Sorted(maps.Keys(f.Cluster.Indices)) {
		x := f.Cluster.Indices[name]
		create := cluster.CreateIndex{Name: name, UUID: id(), Shards: x.Shards, ServiceTime: x.ServiceTime.Cluster(), CreatedAt: now}
		if err := c.CreateIndex(ctx, create); err != nil {
			return nil, fmt.Errorf("index %s: %w", name, err)
		}
	}
	groups = map[string]string{}
	for i := range f.Groups {
		g := f.Groups[i].Create()
		g.ID, g.UpdatedAt = id(), now
		if err := c.Members[0].Propose(ctx, c.form.Create(g)); err != nil {
			return nil, fmt.Errorf("group %s: %w", g.Name, err)
		}
		groups[g.Name] = g.ID
	}
	for i := range f.Rules {
		r := f.Rules[i].Cluster(groups[f.Rules[i].WorkloadGroup])
		r.ID, r.UpdatedAt = id(), now
		if err := c.Members[0].Propose(ctx, &cluster.CreateRule{Rule: r}); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return groups, nil
}
