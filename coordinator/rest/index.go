package rest

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
)

// The settings that an index may be created with, each also with "index."
// before it.
const (
	settingShards      = "number_of_shards"
	settingReplicas    = "number_of_replicas"
	settingServiceTime = "wlmsim.service_time"
)

// parseIndex reads the body of PUT /{index}; an empty one means all defaults:
// one shard, no work.
func parseIndex(data []byte) (*cluster.CreateIndex, error) {
	command := &cluster.CreateIndex{Shards: 1}
	if len(data) == 0 {
		return command, nil
	}
	return command, readBody(data, func(f *fields, name string) error {
		if name != "settings" {
			if err := f.skip(); err != nil {
				return err
			}
			return cluster.Errorf(cluster.Parsing, "unknown key [%s] for create index: settings is the only one, since shards hold no documents", shorten(name))
		}
		if f.kind() != '{' {
			return f.refuse("an object")
		}
		seen := map[string]bool{}
		return f.flat(func(f *fields, key string) error {
			key = strings.TrimPrefix(key, "index.")
			if seen[key] {
				return cluster.Errorf(cluster.Parsing, "duplicate setting [index.%s]", shorten(key))
			}
			seen[key] = true
			return indexSetting(f, key, command)
		})
	})
}

func indexSetting(f *fields, key string, command *cluster.CreateIndex) error {
	switch key {
	case settingShards:
		n, err := f.countText()
		command.Shards = n
		return err
	case settingReplicas:
		n, err := f.countText()
		if err == nil && n != 0 {
			err = cluster.Errorf(cluster.IllegalArgument, "index.%s must be 0 but was %d: a simulated shard has one copy", settingReplicas, n)
		}
		return err
	case settingServiceTime:
		t, err := f.serviceTime()
		command.ServiceTime = t
		return err
	}
	if err := f.skip(); err != nil {
		return err
	}
	return cluster.Errorf(cluster.IllegalArgument, "unknown setting [index.%s]: one of [index.%s, index.%s, index.%s]", shorten(key), settingShards, settingReplicas, settingServiceTime)
}

// countText reads a plain integer that may be written as text, as in all
// settings.
func (f *fields) countText() (int, error) {
	text, err := f.word()
	if err != nil {
		return 0, err
	}
	n, ok := plainInteger(text)
	if !ok || n < math.MinInt32 || n > math.MaxInt32 {
		return 0, f.wrong("an integer", text)
	}
	return int(n), nil
}

// serviceTime reads "20ms", {"exponential":{"mean":..}},
// {"lognormal":{"p50":..,"p99":..}}, {"uniform":{"min":..,"max":..}} or
// {"pareto":{"min":..,"alpha":..}}.
func (f *fields) serviceTime() (cluster.ServiceTime, error) {
	if f.kind() == '"' {
		d, err := f.duration()
		return cluster.ServiceTime{Distribution: cluster.Constant, Mean: d}, err
	}
	t := cluster.ServiceTime{}
	if f.kind() != '{' {
		return t, f.refuse("a time such as 20ms, or an object")
	}
	whole := f.path
	err := f.object(whole, func(f *fields, name string) error {
		if t.Distribution != "" {
			return cluster.Errorf(cluster.IllegalArgument, "%s must name one distribution but names [%s] and [%s]", whole, t.Distribution, shorten(name))
		}
		t.Distribution = cluster.Distribution(name)
		return f.quantities(&t)
	})
	if err == nil && t.Distribution == "" {
		err = cluster.Errorf(cluster.IllegalArgument, "%s must name one distribution of [exponential, lognormal, uniform, pareto]", whole)
	}
	return t, err
}

// part is a quantity of a distribution: its name and where it goes, a time or
// a number.
type part struct {
	name   string
	time   *time.Duration
	number *float64
}

// parts lists the quantities of a distribution, in the order they are written.
func parts(t *cluster.ServiceTime) []part {
	switch t.Distribution {
	case cluster.Exponential:
		return []part{{name: "mean", time: &t.Mean}}
	case cluster.LogNormal:
		return []part{{name: "p50", time: &t.P50}, {name: "p99", time: &t.P99}}
	case cluster.Uniform:
		return []part{{name: "min", time: &t.Min}, {name: "max", time: &t.Max}}
	case cluster.Pareto:
		return []part{{name: "min", time: &t.Min}, {name: "alpha", number: &t.Alpha}}
	}
	return nil
}

// quantities reads the object of a distribution; each of its quantities must
// be there.
func (f *fields) quantities(t *cluster.ServiceTime) error {
	path, missing := f.path, parts(t)
	if missing == nil {
		return cluster.Errorf(cluster.IllegalArgument, "%s is not one of [exponential, lognormal, uniform, pareto]", shorten(path))
	}
	if f.kind() != '{' {
		return f.refuse("an object")
	}
	err := f.object(path, func(f *fields, name string) (err error) {
		i := slices.IndexFunc(missing, func(p part) bool { return p.name == name })
		if i < 0 {
			return cluster.Errorf(cluster.IllegalArgument, "%s is not a part of %s", shorten(f.path), path)
		}
		p := missing[i]
		missing = slices.Delete(missing, i, i+1)
		if p.number != nil {
			*p.number, err = f.number()
		} else {
			*p.time, err = f.duration()
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		var names []string
		for _, p := range missing {
			names = append(names, path+"."+p.name)
		}
		return cluster.Errorf(cluster.IllegalArgument, "%s is missing", strings.Join(names, ", "))
	}
	return nil
}

// duration reads a time value, OpenSearch's or with a fraction as in 1.5ms.
func (f *fields) duration() (time.Duration, error) {
	text, err := f.text()
	if err != nil {
		return 0, err
	}
	if d, err := cluster.ParseTime(text); err == nil && d >= 0 {
		return d, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return d, nil
	}
	return 0, f.wrong("a time such as 20ms", text)
}

func (c *call) createIndex() error {
	data, err := c.body()
	if err != nil {
		return err
	}
	command, err := parseIndex(data)
	if err != nil {
		return err
	}
	command.Name = c.vars.get("index")
	command.UUID, command.CreatedAt = c.config.Cluster.NewID(), c.config.Cluster.Now().UnixMilli()
	result, err := c.propose(command)
	if err != nil {
		return err
	}
	c.out.object(func() {
		c.out.name("acknowledged").boolean(result.Acknowledged)
		c.out.name("shards_acknowledged").boolean(result.Acknowledged)
		c.out.name("index").text(command.Name)
	})
	return nil
}

func (c *call) deleteIndex() error {
	return c.acknowledge(&cluster.DeleteIndex{Name: c.vars.get("index")})
}

// indices returns the indices that the path names, as published here.
func (c *call) indices() ([]*cluster.Index, error) {
	if err := c.ready(); err != nil {
		return nil, err
	}
	return c.config.Cluster.State().MatchIndices(c.vars.get("index"))
}

func (c *call) headIndex() error {
	_, err := c.indices()
	return err
}

func (c *call) getIndex() error {
	indices, err := c.indices()
	if err != nil {
		return err
	}
	human, err := c.flag("human", false)
	if err != nil {
		return err
	}
	c.out.object(func() {
		for _, x := range indices {
			c.out.name(x.Name).object(func() { c.out.index(x, human) })
		}
	})
	return nil
}

// index writes an index, with human its date also as people read it.
func (e *encoder) index(x *cluster.Index, human bool) {
	e.name("aliases").object(func() {})
	e.name("mappings").object(func() {})
	e.name("settings").object(func() { e.indexSettings(x, human) })
}

func (e *encoder) indexSettings(x *cluster.Index, human bool) {
	e.name("index").object(func() {
		if human {
			e.name("creation_date_string").text(dateText(x.CreatedAt))
		}
		e.name("creation_date").text(strconv.FormatInt(x.CreatedAt, 10))
		e.name("number_of_replicas").text("0")
		e.name("number_of_shards").text(strconv.Itoa(x.Shards()))
		e.name("provided_name").text(x.Name)
		e.name("uuid").text(x.UUID)
		e.name("wlmsim").object(func() { e.name("service_time").serviceTime(x.ServiceTime) })
	})
}

// serviceTime writes what fields.serviceTime reads.
func (e *encoder) serviceTime(t cluster.ServiceTime) {
	quantities := parts(&t)
	if quantities == nil {
		e.text(timeText(t.Mean))
		return
	}
	e.object(func() {
		e.name(string(t.Distribution)).object(func() {
			for _, p := range quantities {
				if p.number != nil {
					e.name(p.name).double(*p.number)
				} else {
					e.name(p.name).text(timeText(*p.time))
				}
			}
		})
	})
}

// timeText writes a duration as one number with a unit.
func timeText(d time.Duration) string {
	for _, unit := range []struct {
		suffix string
		length time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}, {"micros", time.Microsecond}} {
		if d != 0 && d%unit.length == 0 {
			return strconv.FormatInt(int64(d/unit.length), 10) + unit.suffix
		}
	}
	if d == 0 {
		return "0ms"
	}
	return strconv.FormatInt(int64(d), 10) + "nanos"
}
