package scenario

// Promise is the name of something that is checked in every run without being
// asked for.
type Promise string

// The promises. [Promises] says what each means.
const (
	PermitsBounded       Promise = "permits_bounded"
	PermitsReturn        Promise = "permits_return"
	OneOutcome           Promise = "one_outcome"
	CountersAddUp        Promise = "counters_add_up"
	RejectionAttribution Promise = "rejection_attribution"
	RejectionKept        Promise = "rejection_kept"
	PrincipalStays       Promise = "principal_stays"
	BucketsDistinct      Promise = "buckets_distinct"
	VersionsForward      Promise = "versions_forward"
	StatesEqual          Promise = "states_equal"
	HistoryLinearizable  Promise = "history_linearizable"
	Settles              Promise = "settles"
)

// Meaning is a promise and what it promises, in one line.
type Meaning struct {
	Promise Promise
	Means   string
}

// Promises returns all promises, in the order in which results list them.
func Promises() []Meaning {
	return []Meaning{
		{PermitsBounded, "a bucket never holds more than the limit in the version that the admitted search read, and never less than 0"},
		{PermitsReturn, "with nothing running, no bucket is left"},
		{OneOutcome, "each search that was sent has exactly one outcome on its coordinator, and its client saw it"},
		{CountersAddUp, "per node and incarnation, total_throttled over all groups plus uncounted is the number of 429s given"},
		{RejectionAttribution, "no rejection is counted on another group than its own"},
		{RejectionKept, "whoever found the bucket full was refused"},
		{PrincipalStays, "no node-to-node byte holds a canary"},
		{BucketsDistinct, "two principals that differ in a byte never share a bucket, and one never has two"},
		{VersionsForward, "a node's published version never goes back, and no version is skipped by a listener"},
		{StatesEqual, "once settled, all nodes have equal states"},
		{HistoryLinearizable, "group writes and leader reads have an order that explains all answers, unknown ones either way"},
		{Settles, "after the last fault there is one leader, all members are there, all have applied, within the bound"},
	}
}

func promiseNames() []string {
	var names []string
	for _, m := range Promises() {
		names = append(names, string(m.Promise))
	}
	return names
}
