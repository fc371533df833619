package rest

import (
	"maps"
	"slices"
	"strings"

	"github.com/wlmsim/wlmsim/cluster"
)

// parseSettings reads the body of PUT /_cluster/settings. keyOf turns a key of
// the body into the one that is meant.
func parseSettings(data []byte, keyOf func(string) string) (*cluster.PutSettings, error) {
	command := &cluster.PutSettings{}
	err := readBody(data, func(f *fields, name string) (err error) {
		switch name {
		case "persistent":
			command.Persistent, err = readSettings(f, keyOf)
		case "transient":
			command.Transient, err = readSettings(f, keyOf)
		default:
			if err := f.skip(); err != nil {
				return err
			}
			return cluster.Errorf(cluster.Parsing, "[cluster_update_settings_request] unknown field [%s]", shorten(name))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(command.Persistent)+len(command.Transient) == 0 {
		return nil, cluster.Errorf(actionValidation, "Validation Failed: 1: no settings to update;")
	}
	return command, command.SettingsChange.Validate(true)
}

func readSettings(f *fields, keyOf func(string) string) (map[string]*string, error) {
	if f.kind() != '{' {
		return nil, f.refuse("an object")
	}
	part, set := f.path, map[string]*string{}
	err := f.flat(func(f *fields, key string) error {
		key = keyOf(key)
		if _, twice := set[key]; twice {
			return cluster.Errorf(cluster.Parsing, "duplicate setting [%s] in [%s]", key, part)
		}
		if f.null() {
			set[key] = nil
			return nil
		}
		value, err := f.word()
		set[key] = &value
		return err
	})
	return set, err
}

// settingKey is the key that a client means.
func (c *call) settingKey(key string) string {
	if c.config.QueryGroupAlias {
		return newSetting(key)
	}
	return key
}

// settingsFlags reads the parameters of both ways to the settings. They change
// nothing but the form: the node answers from its own state, and a write waits
// as long as all writes do.
func (c *call) settingsFlags() (flat bool, err error) {
	for _, name := range []string{"timeout", "cluster_manager_timeout", "master_timeout"} {
		if _, err := c.duration(name, 0); err != nil {
			return false, err
		}
	}
	if _, err := c.flag("local", true); err != nil {
		return false, err
	}
	return c.flag("flat_settings", false)
}

func (c *call) putSettings() error {
	flat, err := c.settingsFlags()
	if err != nil {
		return err
	}
	data, err := c.body()
	if err != nil {
		return err
	}
	command, err := parseSettings(data, c.settingKey)
	if err != nil {
		return err
	}
	result, err := c.propose(command)
	if err != nil {
		return err
	}
	c.out.object(func() {
		c.out.name("acknowledged").boolean(result.Acknowledged)
		c.out.name("persistent").settings(given(command.Persistent), flat)
		c.out.name("transient").settings(given(command.Transient), flat)
	})
	return nil
}

// given returns the entries that are not null.
func given(set map[string]*string) map[string]string {
	values := map[string]string{}
	for key, value := range set {
		if value != nil {
			values[key] = *value
		}
	}
	return values
}

func (c *call) getSettings() error {
	flat, err := c.settingsFlags()
	if err != nil {
		return err
	}
	all, err := c.flag("include_defaults", false)
	if err != nil {
		return err
	}
	settings := c.config.Cluster.State().Settings()
	c.out.object(func() {
		c.out.name("persistent").settings(settings.Persistent, flat)
		c.out.name("transient").settings(settings.Transient, flat)
		if all {
			c.out.name("defaults").settings(defaults(settings), flat)
		}
	})
	return nil
}

// defaults returns the keys that were not set, with their defaults.
func defaults(set cluster.Settings) map[string]string {
	values := map[string]string{}
	for key, known := range cluster.KnownSettings() {
		_, persistent := set.Persistent[key]
		_, transient := set.Transient[key]
		if !persistent && !transient {
			values[key] = known.Default
		}
	}
	return values
}

// settings writes values by key, flat or with one object for each part of the
// dotted names.
func (e *encoder) settings(values map[string]string, flat bool) {
	e.object(func() {
		if flat {
			e.sorted(values)
			return
		}
		keys := slices.SortedFunc(maps.Keys(values), func(a, b string) int {
			return slices.Compare(strings.Split(a, "."), strings.Split(b, "."))
		})
		e.nested(keys, values, "")
	})
}

// nested writes the sorted keys, all of which begin with prefix.
func (e *encoder) nested(keys []string, values map[string]string, prefix string) {
	for len(keys) > 0 {
		part, _, inner := strings.Cut(keys[0][len(prefix):], ".")
		if !inner {
			e.name(part).text(values[keys[0]])
			keys = keys[1:]
			continue
		}
		below := prefix + part + "."
		n := 0
		for n < len(keys) && strings.HasPrefix(keys[n], below) {
			n++
		}
		e.name(part).object(func() { e.nested(keys[:n], values, below) })
		keys = keys[n:]
	}
}

// sorted writes values as members, by name.
func (e *encoder) sorted(values map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		e.name(key).text(values[key])
	}
}
