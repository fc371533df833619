package cluster

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Keys of the cluster's settings (WorkloadManagementSettings.java and the
// search settings that the coordinator reads).
const (
	SettingMode                  = "wlm.workload_group.mode"
	SettingDuressStreak          = "wlm.workload_group.duress_streak"
	SettingEnforcementInterval   = "wlm.workload_group.enforcement_interval"
	SettingCPURejection          = "wlm.workload_group.node.cpu_rejection_threshold"
	SettingMemoryRejection       = "wlm.workload_group.node.memory_rejection_threshold"
	SettingCPUCancellation       = "wlm.workload_group.node.cpu_cancellation_threshold"
	SettingMemoryCancellation    = "wlm.workload_group.node.memory_cancellation_threshold"
	SettingMaxGroups             = "node.workload_group.max_count"
	SettingRuleRefresh           = "wlm.rule.sync_refresh_interval_ms"
	SettingMaxRules              = "wlm.autotagging.max_rules"
	SettingPublishTimeout        = "cluster.publish.timeout"
	SettingSearchTimeout         = "search.default_search_timeout"
	SettingAllowPartialResults   = "search.default_allow_partial_results"
	SettingCancelAfter           = "search.cancel_after_time_interval"
	SettingMaxKeepAlive          = "search.max_keep_alive"
	SettingMaxScrolls            = "search.max_open_scroll_context"
	SettingMaxPointKeepAlive     = "point_in_time.max_keep_alive"
	SettingMaxPoints             = "search.max_open_pit_context"
	defaultNodeCancellationLimit = 0.95
	defaultNodeRejectionLimit    = 0.90
)

// Mode is the cluster's workload management mode.
type Mode string

// The three modes. Throttling happens in Enabled only.
const (
	Disabled    Mode = "disabled"
	Enabled     Mode = "enabled"
	MonitorOnly Mode = "monitor_only"
)

// Setting describes one key.
type Setting struct {
	Default string
	Dynamic bool // may be changed by PUT _cluster/settings on a running cluster
	check   check
}

// check returns why a key must not have a value, or nil.
type check func(key, value string) error

// KnownSettings returns every key that a cluster's settings may have.
func KnownSettings() map[string]Setting { return maps.Clone(knownSettings) }

// knownSettings is not changed.
var knownSettings = map[string]Setting{
	SettingMode:                {string(MonitorOnly), true, checkClusterMode},
	SettingDuressStreak:        {"3", true, atLeast(3)},
	SettingEnforcementInterval: {"1000", true, atLeast(1000)},
	SettingCPURejection:        {"0.8", true, below(defaultNodeRejectionLimit)},
	SettingMemoryRejection:     {"0.8", true, below(defaultNodeRejectionLimit)},
	SettingCPUCancellation:     {"0.9", true, below(defaultNodeCancellationLimit)},
	SettingMemoryCancellation:  {"0.9", true, below(defaultNodeCancellationLimit)},
	SettingMaxGroups:           {"100", true, checkMaxGroups},
	SettingRuleRefresh:         {"5000", false, atLeast(1000)},
	SettingMaxRules:            {"10000", true, atLeast(10)},
	SettingPublishTimeout:      {"30s", false, checkTime},
	SettingSearchTimeout:       {"-1", true, checkTime},
	SettingAllowPartialResults: {"true", true, checkBool},
	SettingCancelAfter:         {"-1", true, checkTime},
	SettingMaxKeepAlive:        {"24h", true, checkTime},
	SettingMaxScrolls:          {"500", true, atLeast(0)},
	SettingMaxPointKeepAlive:   {"24h", true, checkTime},
	SettingMaxPoints:           {"300", true, atLeast(0)},
}

// Settings are the cluster's settings. A transient value covers a persistent
// one, which covers the default. The zero value has nothing but defaults.
type Settings struct {
	Persistent map[string]string `json:"persistent,omitzero"`
	Transient  map[string]string `json:"transient,omitzero"`
}

// Get returns the value of key in force; "" for an unknown key without a value.
func (s Settings) Get(key string) string {
	if v, ok := s.Transient[key]; ok {
		return v
	}
	if v, ok := s.Persistent[key]; ok {
		return v
	}
	return knownSettings[key].Default
}

// SettingsChange is what PUT _cluster/settings asks for: a nil value takes a
// key back to what it covers.
type SettingsChange struct {
	Persistent map[string]*string `json:"persistent,omitzero"`
	Transient  map[string]*string `json:"transient,omitzero"`
}

// Empty says whether nothing is asked for.
func (c SettingsChange) Empty() bool { return len(c.Persistent)+len(c.Transient) == 0 }

// Validate refuses unknown keys and values out of bounds. With onlyDynamic it
// refuses keys that a running cluster cannot change as well.
func (c SettingsChange) Validate(onlyDynamic bool) error {
	for _, part := range []struct {
		name string
		set  map[string]*string
	}{{"persistent", c.Persistent}, {"transient", c.Transient}} {
		for _, key := range slices.Sorted(maps.Keys(part.set)) {
			setting, ok := knownSettings[key]
			switch value := part.set[key]; {
			case !ok:
				return Errorf(IllegalArgument, "%s setting [%s], not recognized", part.name, key)
			case onlyDynamic && !setting.Dynamic:
				return Errorf(IllegalArgument, "%s setting [%s], not dynamically updateable", part.name, key)
			case value == nil:
			default:
				if err := setting.check(key, *value); err != nil {
					return Errorf(IllegalArgument, "%s", err)
				}
			}
		}
	}
	return nil
}

func (s Settings) merge(c SettingsChange) (Settings, error) {
	next := Settings{mergeText(s.Persistent, c.Persistent), mergeText(s.Transient, c.Transient)}
	for _, pair := range [][2]string{{SettingCPUCancellation, SettingCPURejection}, {SettingMemoryCancellation, SettingMemoryRejection}} {
		cancellation, errC := strconv.ParseFloat(next.Get(pair[0]), 64)
		rejection, errR := strconv.ParseFloat(next.Get(pair[1]), 64)
		if errC == nil && errR == nil && cancellation < rejection {
			return s, Errorf(IllegalArgument, "%s value should not be less than %s", pair[0], pair[1])
		}
	}
	return next, nil
}

func checkClusterMode(_, v string) error {
	switch Mode(v) {
	case Disabled, Enabled, MonitorOnly:
		return nil
	}
	//lint:ignore ST1005 OpenSearch's own words
	return fmt.Errorf("Invalid value for WlmMode: %s", v)
}

func checkMaxGroups(key, v string) error {
	if n, err := strconv.Atoi(v); err != nil || n < 1 || n > 100 {
		//lint:ignore ST1005 OpenSearch's own words
		return fmt.Errorf("%s should be in range [1-100].", key)
	}
	return nil
}

func atLeast(least int64) check {
	return func(key, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			//lint:ignore ST1005 OpenSearch's own words
			return fmt.Errorf("Failed to parse value [%s] for setting [%s]", v, key)
		}
		if n < least {
			//lint:ignore ST1005 OpenSearch's own words
			return fmt.Errorf("Failed to parse value [%s] for setting [%s] must be >= %d", v, key, least)
		}
		return nil
	}
}

func below(most float64) check {
	return func(key, v string) error {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || !(f >= 0) {
			//lint:ignore ST1005 OpenSearch's own words
			return fmt.Errorf("Failed to parse value [%s] for setting [%s]", v, key)
		}
		if f > most {
			return fmt.Errorf("%s value cannot be greater than %.2f as it can result in a node drop", key, most)
		}
		return nil
	}
}

func checkBool(_, v string) error {
	if v != "true" && v != "false" {
		//lint:ignore ST1005 OpenSearch's own words
		return fmt.Errorf("Failed to parse value [%s] as only [true] or [false] are allowed.", v)
	}
	return nil
}

func checkTime(key, v string) error {
	if _, err := ParseTime(v); err != nil {
		return fmt.Errorf("failed to parse setting [%s] with value [%s] as a time value: %w", key, v, err)
	}
	return nil
}

// ParseTime reads OpenSearch's time values: a whole number with a unit of
// nanos, micros, ms, s, m, h or d, or -1 (no limit, returned as -1) or 0. The
// greatest value is 2^62 nanoseconds, 146 years.
func ParseTime(v string) (time.Duration, error) {
	switch v {
	case "-1":
		return -1, nil
	case "0":
		return 0, nil
	}
	for _, unit := range []struct {
		suffix string
		length time.Duration
	}{{"nanos", time.Nanosecond}, {"micros", time.Microsecond}, {"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}} {
		digits, found := strings.CutSuffix(v, unit.suffix)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 || n > int64((1<<62)/unit.length) {
			break
		}
		return time.Duration(n) * unit.length, nil
	}
	return 0, fmt.Errorf("[%s] is not -1, 0, or a whole number with a unit (nanos, micros, ms, s, m, h, d)", v)
}

// FormatTime writes a time as OpenSearch does in its messages: in the greatest
// unit of which it is one or more, with at most one place after the point.
func FormatTime(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "micros"}} {
		if d >= unit.length {
			return strconv.FormatFloat(math.Trunc(float64(d)/float64(unit.length)*10)/10, 'f', -1, 64) + unit.name
		}
	}
	return strconv.FormatInt(int64(d), 10) + "nanos"
}

// resolved are the settings that the node reads on every search, worked out
// once when a State is made.
type resolved struct {
	mode           Mode
	publishTimeout time.Duration
	searchTimeout  time.Duration
	ruleRefresh    time.Duration
	partial        bool
	cancelAfter    time.Duration
	scrolls        Kept
	points         Kept
}

// Kept bounds the scroll contexts, or the points in time, of a node.
type Kept struct {
	Most      int           // shards that a node keeps at once
	KeepAlive time.Duration // the longest that a client may ask for; negative: any
}

func (s Settings) resolve() resolved {
	return resolved{
		mode:           Mode(s.valid(SettingMode)),
		publishTimeout: s.duration(SettingPublishTimeout),
		searchTimeout:  s.duration(SettingSearchTimeout),
		ruleRefresh:    time.Duration(s.number(SettingRuleRefresh)) * time.Millisecond,
		partial:        s.valid(SettingAllowPartialResults) == "true",
		cancelAfter:    s.duration(SettingCancelAfter),
		scrolls:        Kept{int(s.number(SettingMaxScrolls)), s.duration(SettingMaxKeepAlive)},
		points:         Kept{int(s.number(SettingMaxPoints)), s.duration(SettingMaxPointKeepAlive)},
	}
}

// valid returns the value in force, or the default where a stored value is
// one that no client may write.
func (s Settings) valid(key string) string {
	setting, value := knownSettings[key], s.Get(key)
	if setting.check(key, value) != nil {
		return setting.Default
	}
	return value
}

func (s Settings) duration(key string) time.Duration {
	d, _ := ParseTime(s.valid(key)) // valid values and defaults parse
	return d
}

func (s Settings) number(key string) int64 {
	n, _ := strconv.ParseInt(s.valid(key), 10, 64) // valid values and defaults parse
	return n
}

// Mode returns the cluster's mode in force.
func (s *State) Mode() Mode { return s.resolved.mode }

// PublishTimeout returns how long a change waits for the nodes to apply it.
func (s *State) PublishTimeout() time.Duration { return s.resolved.publishTimeout }

// SearchTimeout returns the default timeout of a search; -1 means none.
func (s *State) SearchTimeout() time.Duration { return s.resolved.searchTimeout }

// AllowPartialResults returns whether a search whose request does not say may
// answer without some of its shards.
func (s *State) AllowPartialResults() bool { return s.resolved.partial }

// CancelAfter returns after how long a search is cancelled whose request and
// group do not say; -1 means never.
func (s *State) CancelAfter() time.Duration { return s.resolved.cancelAfter }

// Scrolls returns the bounds of scroll contexts.
func (s *State) Scrolls() Kept { return s.resolved.scrolls }

// Points returns the bounds of points in time.
func (s *State) Points() Kept { return s.resolved.points }

// RuleRefresh returns how often each node refreshes its view of the rules.
func (s *State) RuleRefresh() time.Duration { return s.resolved.ruleRefresh }
