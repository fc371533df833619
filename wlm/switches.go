package wlm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wlmsim/wlmsim/cluster"
)

// Counters says how the map from group to counters behaves when a read and a
// write of it overlap. Source: remark 1 of the review.
type Counters string

const (
	// CountersSafe lets reads and writes overlap (a ConcurrentHashMap).
	CountersSafe Counters = "safe"
	// CountersPlain fails a read that overlaps a write, as Java's HashMap may.
	// The failure is modelled, since Go's own map would end the process.
	CountersPlain Counters = "plain"
)

// MissingCounters says where a rejection is counted whose group has no
// counters yet. Source: remark 2 of the review.
type MissingCounters string

const (
	// MissingSkip does not count it.
	MissingSkip MissingCounters = "skip"
	// MissingDefaultGroup counts it on DEFAULT_WORKLOAD_GROUP; breaks promise 6.
	MissingDefaultGroup MissingCounters = "default_group"
)

// CountFailure says what becomes of a rejection whose count fails. Source:
// remark 1 of the review.
type CountFailure string

const (
	// FailureKeepsRejection refuses the search all the same.
	FailureKeepsRejection CountFailure = "keeps_rejection"
	// FailureSwallowsRejection admits the search without a permit, since the
	// failure takes the rejection's place and is caught as fail-open; breaks
	// promise 5.
	FailureSwallowsRejection CountFailure = "swallows_rejection"
)

// PrincipalCarrier says how far a search's principal travels. Source: remark 3
// of the review.
type PrincipalCarrier string

const (
	// CarrierContext keeps it in the request's context, on the origin node.
	CarrierContext PrincipalCarrier = "context"
	// CarrierHeader adds it to the headers of every message that the search
	// causes, to data nodes and remote clusters; breaks promise 8.
	CarrierHeader PrincipalCarrier = "header"
)

// PrincipalJoin says how a principal's tokens become one text and tokens
// again. Source: remark 4 of the review.
type PrincipalJoin string

const (
	// JoinEscaped keeps every byte of a name.
	JoinEscaped PrincipalJoin = "escaped"
	// JoinComma joins and splits with ',' and escapes nothing; breaks promise 4.
	JoinComma PrincipalJoin = "comma"
	// JoinUnitSeparator joins and splits with U+001F and escapes nothing. Names
	// with commas are safe; a name that ends in blanks or holds a U+001F still
	// breaks promise 4.
	JoinUnitSeparator PrincipalJoin = "unit_separator"
)

// Acquire says how a permit is taken. Source: the pull request's mechanism,
// and what later versions made of it.
type Acquire string

const (
	// AcquireExact checks and increments in one step.
	AcquireExact Acquire = "exact"
	// AcquireRollback increments, looks, and takes the increment back: of
	// several at once it may refuse one too many, and never admits one.
	AcquireRollback Acquire = "rollback"
)

// Publication says when the leader's own node applies a version. Whoever
// delivers versions to the applier gives it effect, not this package. Source:
// generation G3, and raft's nature.
type Publication string

const (
	// PublicationLeaderFirst applies it as soon as it is committed.
	PublicationLeaderFirst Publication = "leader_first"
	// PublicationManagerLast applies it when every other node has, has failed,
	// or the publish timeout is over.
	PublicationManagerLast Publication = "manager_last"
)

// RejectionText says what a throttled client reads. Source: the pull request,
// and what later versions made of it.
type RejectionText string

const (
	// TextNodeLevel names the limit alone.
	TextNodeLevel RejectionText = "node_level"
	// TextNamesGroup names the group, the user or role that was charged, and
	// the limit.
	TextNamesGroup RejectionText = "names_group"
)

// Monitor says what becomes of a search of a group in resiliency mode monitor
// that finds its bucket full. Source: generations G0 and G3.
type Monitor string

const (
	// MonitorRejects refuses it, as in the other modes.
	MonitorRejects Monitor = "rejects"
	// MonitorObserves admits it without a permit and counts it on
	// total_would_throttle.
	MonitorObserves Monitor = "observes"
)

// Nested says whether a search that another one starts is charged. Source:
// generations G0 and G3.
type Nested string

const (
	// NestedCharged charges it like any other, so that a search whose rewrite
	// asks its own group may refuse itself.
	NestedCharged Nested = "charged"
	// NestedExempt admits it without a permit if the search that started it was
	// counted, whatever the groups of the two.
	NestedExempt Nested = "exempt"
)

// Scroll says whether the next page of a scroll is charged. Source:
// generations G0 and G3.
type Scroll string

const (
	// ScrollFree admits a next page without a permit.
	ScrollFree Scroll = "free"
	// ScrollCharged charges it like a search.
	ScrollCharged Scroll = "charged"
)

// RoleChoice says which of several values is charged, as a user with several
// roles has them. Source: generations G0 and G2.
type RoleChoice string

const (
	// RoleFirst charges the first one in the order given.
	RoleFirst RoleChoice = "first"
	// RoleSmallest charges the one that Java's order of strings puts first:
	// that of UTF-16 code units.
	RoleSmallest RoleChoice = "smallest"
)

// GroupHeader says what becomes of a search that names a group by its header
// and is given another, or the same, by a rule: above all one that a search
// with a group has started. Source: issue 22927 of OpenSearch and the pull
// request 22932 that answers it.
type GroupHeader string

const (
	// HeaderPutOnce refuses it, since the header may be put once only.
	HeaderPutOnce GroupHeader = "put_once"
	// HeaderKeepsOuter leaves the header as it was.
	HeaderKeepsOuter GroupHeader = "keeps_outer"
)

// Switches are the places where versions of OpenSearch's throttle differ. An
// empty field means the value of profile reviewed.
type Switches struct {
	Counters         Counters             `json:"counters,omitempty" yaml:"counters,omitempty"`
	MissingCounters  MissingCounters      `json:"missing_counters,omitempty" yaml:"missing_counters,omitempty"`
	CountFailure     CountFailure         `json:"count_failure,omitempty" yaml:"count_failure,omitempty"`
	PrincipalCarrier PrincipalCarrier     `json:"principal_carrier,omitempty" yaml:"principal_carrier,omitempty"`
	PrincipalJoin    PrincipalJoin        `json:"principal_join,omitempty" yaml:"principal_join,omitempty"`
	Acquire          Acquire              `json:"acquire,omitempty" yaml:"acquire,omitempty"`
	Publication      Publication          `json:"publication,omitempty" yaml:"publication,omitempty"`
	DimensionKey     cluster.DimensionKey `json:"dimension_key,omitempty" yaml:"dimension_key,omitempty"`
	RejectionText    RejectionText        `json:"rejection_text,omitempty" yaml:"rejection_text,omitempty"`
	Monitor          Monitor              `json:"monitor,omitempty" yaml:"monitor,omitempty"`
	Nested           Nested               `json:"nested,omitempty" yaml:"nested,omitempty"`
	Scroll           Scroll               `json:"scroll,omitempty" yaml:"scroll,omitempty"`
	RoleChoice       RoleChoice           `json:"role_choice,omitempty" yaml:"role_choice,omitempty"`
	GroupHeader      GroupHeader          `json:"group_header,omitempty" yaml:"group_header,omitempty"`
}

// field is one switch of a Switches: its name, where its value is, and what
// may stand there.
type field struct {
	name    string
	value   *string
	allowed []string
}

// allowed are the values of each switch, in the order of [fields] and the
// reviewed one first. It is not changed: every throttle asks for it.
var allowed = [...][]string{
	texts(CountersSafe, CountersPlain),
	texts(MissingSkip, MissingDefaultGroup),
	texts(FailureKeepsRejection, FailureSwallowsRejection),
	texts(CarrierContext, CarrierHeader),
	texts(JoinEscaped, JoinComma, JoinUnitSeparator),
	texts(AcquireExact, AcquireRollback),
	texts(PublicationLeaderFirst, PublicationManagerLast),
	texts(cluster.KeyAttribute, cluster.KeyBy),
	texts(TextNodeLevel, TextNamesGroup),
	texts(MonitorRejects, MonitorObserves),
	texts(NestedCharged, NestedExempt),
	texts(ScrollFree, ScrollCharged),
	texts(RoleFirst, RoleSmallest),
	texts(HeaderPutOnce, HeaderKeepsOuter),
}

// fields returns an array, which needs no memory of its own: an explorer makes
// tens of thousands of throttles a second.
func fields(s *Switches) [len(allowed)]field {
	return [...]field{
		{"counters", (*string)(&s.Counters), allowed[0]},
		{"missing_counters", (*string)(&s.MissingCounters), allowed[1]},
		{"count_failure", (*string)(&s.CountFailure), allowed[2]},
		{"principal_carrier", (*string)(&s.PrincipalCarrier), allowed[3]},
		{"principal_join", (*string)(&s.PrincipalJoin), allowed[4]},
		{"acquire", (*string)(&s.Acquire), allowed[5]},
		{"publication", (*string)(&s.Publication), allowed[6]},
		{"dimension_key", (*string)(&s.DimensionKey), allowed[7]},
		{"rejection_text", (*string)(&s.RejectionText), allowed[8]},
		{"monitor", (*string)(&s.Monitor), allowed[9]},
		{"nested", (*string)(&s.Nested), allowed[10]},
		{"scroll", (*string)(&s.Scroll), allowed[11]},
		{"role_choice", (*string)(&s.RoleChoice), allowed[12]},
		{"group_header", (*string)(&s.GroupHeader), allowed[13]},
	}
}

func texts[T ~string](values ...T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// Names returns the name of every switch, in the order of the fields.
func (s Switches) Names() []string {
	var names []string
	for _, f := range fields(&s) {
		names = append(names, f.name)
	}
	return names
}

// Values returns what a switch may be set to, the value of profile reviewed
// first; nil for an unknown name.
func (s Switches) Values(name string) []string {
	for _, f := range fields(&s) {
		if f.name == name {
			return slices.Clone(f.allowed)
		}
	}
	return nil
}

// Get returns the value of a switch, "" for an unknown name or an empty field.
func (s Switches) Get(name string) string {
	for _, f := range fields(&s) {
		if f.name == name {
			return *f.value
		}
	}
	return ""
}

// With returns s with one switch set. An unknown name or value is an error
// that lists what is allowed.
func (s Switches) With(name, value string) (Switches, error) {
	for _, f := range fields(&s) {
		if f.name != name {
			continue
		}
		*f.value = value
		return s, f.check()
	}
	return s, fmt.Errorf("switch %q is unknown: one of %s", name, strings.Join(s.Names(), ", "))
}

func (f field) check() error {
	if slices.Contains(f.allowed, *f.value) {
		return nil
	}
	return fmt.Errorf("switch %s cannot be %q: one of %s", f.name, *f.value, strings.Join(f.allowed, ", "))
}

// filled returns s with the values of profile reviewed in empty fields.
func (s Switches) filled() Switches {
	for _, f := range fields(&s) {
		if *f.value == "" {
			*f.value = f.allowed[0]
		}
	}
	return s
}

// faults lists every switch with a value that is not allowed.
func (s Switches) faults() []error {
	var faults []error
	for _, f := range fields(&s) {
		if err := f.check(); err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}
