package rest

import (
	"slices"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
)

// parseFilter reads the body of PUT and DELETE of /_wlmsim/holds/{step}; an
// empty one matches every arrival.
func parseFilter(data []byte) (probe.Filter, error) {
	filter := probe.Filter{}
	if len(data) == 0 {
		return filter, nil
	}
	return filter, readBody(data, func(f *fields, name string) (err error) {
		switch name {
		case "group":
			filter.Group, err = f.text()
		case "search":
			filter.Search, err = f.text()
		case "listener":
			filter.Listener, err = f.text()
		case "count":
			var n int64
			if n, err = f.integer(); err == nil {
				filter.Count, err = checkWindow(f.path, n)
			}
		default:
			if err := f.skip(); err != nil {
				return err
			}
			err = cluster.Errorf(cluster.Parsing, "unknown field [%s]: one of [group, search, listener, count]", shorten(name))
		}
		return err
	})
}

// holding refuses all about holds unless the node was started for it.
func (c *call) holding() error {
	if !c.config.AllowHolds {
		return cluster.Errorf(security, "steps can be held only on a node that was started with --allow-holds")
	}
	return nil
}

// step returns the step that the path names.
func (c *call) step() (probe.Step, error) {
	step := probe.Step(c.vars.get("step"))
	if err := c.holding(); err != nil {
		return "", err
	}
	if !slices.Contains(probe.Steps(), step) {
		return "", cluster.Errorf(cluster.ResourceNotFound, "step [%s] is unknown: one of %v", shorten(string(step)), probe.Steps())
	}
	return step, nil
}

func (c *call) hold() error {
	step, err := c.step()
	if err != nil {
		return err
	}
	data, err := c.body()
	if err != nil {
		return err
	}
	filter, err := parseFilter(data)
	if err != nil {
		return err
	}
	if err := c.config.Holds.Hold(step, filter); err != nil {
		return cluster.Errorf(cluster.IllegalArgument, "%v", err)
	}
	c.out.object(func() { c.out.name("acknowledged").boolean(true) })
	return nil
}

// release ends all holds of a step, or with a filter the one that has it.
func (c *call) release() error {
	step, err := c.step()
	if err != nil {
		return err
	}
	data, err := c.body()
	if err != nil {
		return err
	}
	filter, err := parseFilter(data)
	if err != nil {
		return err
	}
	released := false
	if len(data) == 0 {
		released = c.config.Holds.Release(step)
	} else {
		released = c.config.Holds.ReleaseOne(step, filter)
	}
	if !released {
		return notHeld(step)
	}
	c.out.object(func() { c.out.name("acknowledged").boolean(true) })
	return nil
}

func notHeld(step probe.Step) error {
	return cluster.Errorf(cluster.ResourceNotFound, "step [%s] is not held", step)
}

func (c *call) getHold() error {
	step, err := c.step()
	if err != nil {
		return err
	}
	if !slices.Contains(c.config.Holds.Active(), step) {
		return notHeld(step)
	}
	c.out.hold(step, c.config.Holds)
	return nil
}

func (c *call) listHolds() error {
	if err := c.holding(); err != nil {
		return err
	}
	c.out.object(func() {
		c.out.name("holds").array(func() {
			for _, step := range c.config.Holds.Active() {
				c.out.hold(step, c.config.Holds)
			}
		})
	})
	return nil
}

// hold writes a held step and who is parked at it.
func (e *encoder) hold(step probe.Step, holds *probe.Holds) {
	e.object(func() {
		e.name("step").text(string(step))
		e.name("parked").array(func() {
			for _, p := range holds.Parked(step) {
				e.object(func() { e.parked(p) })
			}
		})
	})
}

func (e *encoder) parked(p probe.Event) {
	for _, field := range []struct{ name, value string }{{"group", p.Group}, {"search", p.Search}, {"listener", p.Listener}} {
		if field.value != "" {
			e.name(field.name).text(field.value)
		}
	}
	if p.Version != 0 {
		e.name("version").natural(p.Version)
	}
}
