package cluster

import (
	"maps"
	"slices"
	"unicode/utf16"
)

// DefaultGroupID is the group of every search that no rule and no header gives
// to another one. It is not stored in a State, never throttled, only counted.
const DefaultGroupID = "DEFAULT_WORKLOAD_GROUP"

// MaxGroupName is the greatest length of a group's name, in UTF-16 code units
// as Java counts them.
const MaxGroupName = 50

// ResiliencyMode says how hard a group's limits are meant.
type ResiliencyMode string

// The three modes of a group.
const (
	Soft     ResiliencyMode = "soft"
	Enforced ResiliencyMode = "enforced"
	Monitor  ResiliencyMode = "monitor"
)

// Group is a workload group as the cluster state holds it. A *Group taken from
// a State is shared and must not be changed.
type Group struct {
	ID             string             `json:"_id"`  // 22 URL-safe characters
	Name           string             `json:"name"` // unique within a State
	ResiliencyMode ResiliencyMode     `json:"resiliency_mode"`
	ResourceLimits map[string]float64 `json:"resource_limits,omitzero"` // "cpu", "memory": a share, over 0 up to 1
	Settings       map[string]string  `json:"settings,omitzero"`        // search settings, as text
	Throttling     *Throttling        `json:"throttling,omitempty"`
	UpdatedAt      int64              `json:"updated_at"` // epoch milliseconds, stamped by the node that took the request
}

// Faults lists what a stored group breaks of the rules that [Command.Validate]
// holds a new one to whose throttling has the form of key. A group with faults
// is never throttled.
func (g *Group) Faults(key DimensionKey) []string {
	var faults []string
	for _, err := range g.checks(key) {
		if err != nil {
			faults = append(faults, err.Error())
		}
	}
	return faults
}

// checks holds a group to every rule that looks at it alone, in the order in
// which a client hears of them; nil where a rule is kept.
func (g *Group) checks(key DimensionKey) []error {
	return []error{
		checkGiven(g.ResourceLimits), checkName(g.Name), checkMode(g.ResiliencyMode), checkLimits(g.ResourceLimits),
		checkGroupSettings(g.Settings), key.Check(g.Throttling),
	}
}

func (g *Group) clone() *Group {
	c := *g
	c.ResourceLimits = maps.Clone(g.ResourceLimits)
	c.Settings = maps.Clone(g.Settings)
	c.Throttling = g.Throttling.clone()
	return &c
}

func cloneOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func checkGiven(limits map[string]float64) error {
	if limits == nil {
		return Errorf(NullPointer, "WorkloadGroup.resourceLimits can't be null")
	}
	if len(limits) == 0 {
		return Errorf(IllegalArgument, "WorkloadGroup.resourceLimits should at least have 1 resource limit")
	}
	return nil
}

func checkName(name string) error {
	// A name never has more UTF-16 units than bytes, so most need no encoding.
	if name == "" || len(name) > MaxGroupName && len(utf16.Encode([]rune(name))) > MaxGroupName {
		return Errorf(IllegalArgument, "WorkloadGroup.name shouldn't be null, empty or more than %d chars long", MaxGroupName)
	}
	return nil
}

func checkMode(m ResiliencyMode) error {
	if m == "" {
		return Errorf(NullPointer, "WorkloadGroup.resiliencyMode can't be null")
	}
	if m != Soft && m != Enforced && m != Monitor {
		return Errorf(IllegalArgument, "Invalid value for WorkloadGroupMode: %s", m)
	}
	return nil
}

// checkLimits looks the two resources up, which is faster than to walk the map.
func checkLimits(limits map[string]float64) error {
	sound := 0
	for _, resource := range [...]string{"cpu", "memory"} {
		if limit, ok := limits[resource]; ok && checkLimit(resource, limit) == nil {
			sound++
		}
	}
	if sound == len(limits) {
		return nil
	}
	return firstLimitFault(limits)
}

// firstLimitFault returns the fault of the first resource by name that has one.
func firstLimitFault(limits map[string]float64) error {
	for _, resource := range slices.Sorted(maps.Keys(limits)) {
		if err := checkLimit(resource, limits[resource]); err != nil {
			return err
		}
	}
	return nil
}

func checkLimit(resource string, limit float64) error {
	if resource != "cpu" && resource != "memory" {
		return Errorf(IllegalArgument, "Unknown resource type: [%s]", resource)
	}
	if !(limit > 0 && limit <= 1) {
		return Errorf(IllegalArgument, "resource value should be greater than 0 and less or equal to 1.0")
	}
	return nil
}

// Optional is a field of a partial update: absent (the zero value), null, or
// given.
type Optional[T any] struct {
	Given bool `json:"given,omitempty"` // the field was in the body
	Value *T   `json:"value,omitempty"` // nil means null
}

// Give returns an Optional with a value.
func Give[T any](v T) Optional[T] { return Optional[T]{Given: true, Value: &v} }

// Null returns an Optional that was given as null.
func Null[T any]() Optional[T] { return Optional[T]{Given: true} }

// SettingsPatch is the settings part of an update: Clear removes all, a nil
// value removes its key, other values overwrite.
type SettingsPatch struct {
	Clear bool               `json:"clear,omitempty"`
	Set   map[string]*string `json:"set,omitzero"`
}

// Merge returns s as p changes it; neither is touched.
func (p SettingsPatch) Merge(s map[string]string) map[string]string {
	if p.Clear {
		return nil
	}
	return mergeText(s, p.Set)
}

func mergeText(old map[string]string, set map[string]*string) map[string]string {
	merged := map[string]string{}
	maps.Copy(merged, old)
	for key, value := range set {
		if value == nil {
			delete(merged, key)
		} else {
			merged[key] = *value
		}
	}
	if len(merged) == 0 {
		return nil
	}
	return merged
}

// groupSettings are the keys that a group's settings may have (OpenSearch
// 3.7). It is not changed.
var groupSettings = map[string]check{
	"search.default_search_timeout":        checkTime,
	"search.cancel_after_time_interval":    checkTime,
	"search.max_concurrent_shard_requests": atLeast(1),
	"search.batched_reduce_size":           atLeast(2),
	"search.max_buckets":                   atLeast(0),
	"override_request_values":              checkBool,
}

func checkGroupSettings(settings map[string]string) error {
	if len(settings) == 0 {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if err := checkGroupSetting(key, settings[key]); err != nil {
			return err
		}
	}
	return nil
}

func checkGroupSetting(key, value string) error {
	refuses, known := groupSettings[key]
	if !known {
		return Errorf(IllegalArgument, "Unknown workload group setting: %s; one of %v", key, slices.Sorted(maps.Keys(groupSettings)))
	}
	if err := refuses(key, value); err != nil {
		return Errorf(IllegalArgument, "Invalid value '%s' for %s: %s", value, key, err)
	}
	return nil
}

func (p SettingsPatch) check() error {
	for _, key := range slices.Sorted(maps.Keys(p.Set)) {
		value := p.Set[key]
		if value == nil { // removing a key that is not known harms nobody
			continue
		}
		if err := checkGroupSetting(key, *value); err != nil {
			return err
		}
	}
	return nil
}
