package probe

// Step is the name of an order-sensitive place.
type Step string

// Steps of a change of the state, in the order in which one meets them. Their
// events carry the version where it is known.
const (
	// ClusterProposed: the leader is about to hand a command to raft.
	ClusterProposed Step = "cluster.proposed"
	// ApplierReceived: a version left the applier's queue; nothing has been
	// done with it.
	ApplierReceived Step = "applier.received"
	// ApplierApply: before each subscriber that runs before the version is
	// readable; the event names it.
	ApplierApply Step = "applier.apply"
	// ApplierPublished: the version is readable and no listener has heard of
	// it. Holding it keeps the registration lag open.
	ApplierPublished Step = "applier.published"
	// ApplierNotify: before each listener; the event names it.
	ApplierNotify Step = "applier.notify"
	// MapWriteBegin: the map from groups to counters is about to change.
	MapWriteBegin Step = "wlm.map_write_begin"
	// MapWriteEnd: the map has changed. A read between the two fails under
	// the switch counters: plain.
	MapWriteEnd Step = "wlm.map_write_end"
	// ApplierNotified: the last listener returned and the version counts as
	// applied.
	ApplierNotified Step = "applier.notified"
)

// Steps of a search, in the order in which one meets them. Their events name
// the search, and its group from the tagging on.
const (
	// CoordinatorRead: the coordinator has read the state, for the only time.
	CoordinatorRead Step = "coordinator.state_read"
	// AcquireBegin: the throttle is about to look for a permit. The detail of
	// this event, and of the others of a bucket but Counted's, is the
	// attribute that the bucket is of.
	AcquireBegin Step = "wlm.acquire_begin"
	// AcquireLook: the bucket is incremented and not yet compared with the
	// limit; under the switch acquire: rollback only.
	AcquireLook Step = "wlm.acquire_look"
	// AcquireRollback: the bucket was full and the increment is about to be
	// taken back; under the switch acquire: rollback only.
	AcquireRollback Step = "wlm.acquire_rollback"
	// Acquired: the search holds a permit.
	Acquired Step = "wlm.acquired"
	// Rejected: the bucket was full; the rejection has not been counted.
	Rejected Step = "wlm.rejected"
	// MapRead: a rejection is about to look its group's counters up.
	MapRead Step = "wlm.map_read"
	// Counted: a rejection was counted, or its count was skipped or failed.
	// The detail is the group on which it was counted, "" if on none.
	Counted Step = "wlm.counted"
	// Observed: the bucket was full, the group only watches, and the search is
	// about to be counted and to run without a permit; under the switch
	// monitor: observes only.
	Observed Step = "wlm.observed"
	// FannedOut: every data node's message is on its way.
	FannedOut Step = "coordinator.fanned_out"
	// DataNodeAnswer: a data node has done its shards and is about to answer.
	DataNodeAnswer Step = "datanode.answer"
	// Merge: the last answer is in and about to be merged.
	Merge Step = "coordinator.merge"
	// Merged: the answers are merged; the permit is still held.
	Merged Step = "coordinator.merged"
	// Released: the permit has been given back.
	Released Step = "coordinator.released"
	// Answered: the response has been written to the client.
	Answered Step = "rest.answered"
)

// steps is the list of all steps with what each means in one line. It is not
// changed.
var steps = []struct {
	step  Step
	about string
}{
	{ClusterProposed, "the leader is about to hand a command to raft"},
	{ApplierReceived, "a version left the applier's queue"},
	{ApplierApply, "before each subscriber that runs before the version is readable"},
	{ApplierPublished, "the version is readable, no listener has heard of it: the registration lag"},
	{ApplierNotify, "before each listener"},
	{MapWriteBegin, "the map from groups to counters is about to change"},
	{MapWriteEnd, "the map from groups to counters has changed"},
	{ApplierNotified, "the last listener returned, the version counts as applied"},
	{CoordinatorRead, "the coordinator has read the state, for the only time"},
	{AcquireBegin, "the throttle is about to look for a permit"},
	{AcquireLook, "between increment and comparison (acquire: rollback)"},
	{AcquireRollback, "before the increment is taken back (acquire: rollback)"},
	{Acquired, "the search holds a permit"},
	{Rejected, "the bucket was full, nothing is counted yet"},
	{MapRead, "a rejection is about to look its group's counters up"},
	{Counted, "a rejection was counted, or its count was skipped or failed"},
	{Observed, "the bucket was full and the group only watches (monitor: observes)"},
	{FannedOut, "every data node's message is on its way"},
	{DataNodeAnswer, "a data node is about to answer"},
	{Merge, "the answers are about to be merged"},
	{Merged, "the answers are merged, the permit is still held"},
	{Released, "the permit has been given back"},
	{Answered, "the response has been written"},
}

// Steps returns every step, in the order in which a change and then a search
// meet them.
func Steps() []Step {
	all := make([]Step, len(steps))
	for i, s := range steps {
		all[i] = s.step
	}
	return all
}

// About says in one line what the step marks; "" for a step that is unknown.
func (s Step) About() string {
	for _, known := range steps {
		if known.step == s {
			return known.about
		}
	}
	return ""
}
