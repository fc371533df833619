package scenario

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
)

// Create returns the group as a command creates it, without id and time.
func (g *Group) Create() cluster.Group {
	made := cluster.Group{Name: g.Name, ResiliencyMode: g.ResiliencyMode, ResourceLimits: maps.Clone(g.ResourceLimits), Settings: texts(g.Settings)}
	if t := g.Throttling; t != nil && *t != (Throttling{}) {
		made.Throttling = &cluster.Throttling{Attribute: t.Attribute}
		if t.NodeLimit != 0 {
			made.Throttling.NodeLimit = &t.NodeLimit
		}
	}
	return made
}

// Update returns the group as a command updates it, without the time: what the
// file does not give stays, and a throttling of {} is taken away.
func (g *Group) Update() cluster.UpdateGroup {
	made := cluster.UpdateGroup{Name: g.Name, ResiliencyMode: g.ResiliencyMode, ResourceLimits: maps.Clone(g.ResourceLimits)}
	made.Settings.Set = pointers(g.Settings)
	switch t := g.Throttling; {
	case t == nil:
	case *t == (Throttling{}):
		made.Throttling.Clear = true
	default:
		if t.Attribute != "" {
			made.Throttling.Attribute = cluster.Give(t.Attribute)
		}
		if t.NodeLimit != 0 {
			made.Throttling.NodeLimit = cluster.Give(t.NodeLimit)
		}
	}
	return made
}

// Cluster returns the rule as a command creates it, for the group of an id;
// without id and time. Its description is its name.
func (r *Rule) Cluster(group string) cluster.Rule {
	made := cluster.Rule{Description: r.Name, WorkloadGroup: group, IndexPatterns: r.IndexPatterns, Usernames: r.Usernames, Roles: r.Roles}
	fill(&made.Description, "rule of the scenario")
	return made
}

// Change returns the settings as a command changes them.
func (p *PutSettings) Change() cluster.SettingsChange {
	return cluster.SettingsChange{Persistent: pointers(p.Persistent), Transient: pointers(p.Transient)}
}

func texts(settings map[string]Setting) map[string]string {
	if settings == nil {
		return nil
	}
	made := map[string]string{}
	for key, value := range settings {
		made[key] = string(value)
	}
	return made
}

func pointers(settings map[string]Setting) map[string]*string {
	if settings == nil {
		return nil
	}
	made := map[string]*string{}
	for key, value := range settings {
		text := string(value)
		made[key] = &text
	}
	return made
}

// Cluster returns the time as an index of the cluster has it.
func (t *ServiceTime) Cluster() cluster.ServiceTime {
	switch {
	case t.Exponential != nil:
		return cluster.ServiceTime{Distribution: cluster.Exponential, Mean: time.Duration(t.Exponential.Mean)}
	case t.Lognormal != nil:
		return cluster.ServiceTime{Distribution: cluster.LogNormal, P50: time.Duration(t.Lognormal.P50), P99: time.Duration(t.Lognormal.P99)}
	case t.Pareto != nil:
		return cluster.ServiceTime{Distribution: cluster.Pareto, Min: time.Duration(t.Pareto.Min), Alpha: t.Pareto.Alpha}
	}
	return cluster.ServiceTime{Distribution: cluster.Constant, Mean: time.Duration(t.Fixed)}
}

// check returns what is wrong with the time, or nil.
func (t *ServiceTime) check() error {
	kinds := 0
	for _, set := range []bool{t.Exponential != nil, t.Lognormal != nil, t.Pareto != nil} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return fmt.Errorf("%d distributions at once: give one", kinds)
	case t.Exponential != nil && t.Exponential.Mean == 0:
		return errors.New("a mean of 0s draws nothing: write 0s in place of the distribution")
	}
	return t.Cluster().Check()
}
