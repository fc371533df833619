package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/wire"
)

// SearchFailed is the type of the error that a [SearchError] is answered as.
const SearchFailed cluster.Kind = "search_phase_execution_exception"

// Reasons of a [SearchError].
const (
	AllShardsFailed = "all shards failed"
	PartialFailure  = "Partial shards failure" // partial results were not allowed
)

// SearchError is the end of a search of which no shard answered, or of which
// one did not although partial results were not allowed.
type SearchError struct {
	Phase    string // always "query"
	Reason   string // AllShardsFailed or PartialFailure
	Status   int    // HTTP status, from the causes
	Failures []ShardFailure
}

// Error returns the reason and the first cause.
func (e *SearchError) Error() string {
	return fmt.Sprintf("%s: %s", e.Reason, e.Failures[0].Reason)
}

// Unwrap returns the causes, in the order of Failures.
func (e *SearchError) Unwrap() []error {
	causes := make([]error, len(e.Failures))
	for i, f := range e.Failures {
		causes[i] = f.Error
	}
	return causes
}

func newSearchError(reason string, failures []ShardFailure) *SearchError {
	return &SearchError{Phase: "query", Reason: reason, Status: statusOf(failures), Failures: failures}
}

// statusOf returns the status that the causes agree on; 503 where rejections
// and nodes out of reach are mixed, since both go away by themselves; else 500.
func statusOf(failures []ShardFailure) int {
	first, alike, passing := statusOfKind(failures[0].Kind), true, true
	for _, f := range failures {
		status := statusOfKind(f.Kind)
		alike = alike && status == first
		passing = passing && (status == 429 || status == 503)
	}
	switch {
	case alike:
		return first
	case passing:
		return 503
	}
	return 500
}

// statusOfKind returns the status of one shard's failure.
func statusOfKind(kind cluster.Kind) int {
	switch kind {
	case cluster.TooMany:
		return 429
	case cluster.IllegalArgument, cluster.Parsing, cluster.Validation:
		return 400
	case cluster.IndexNotFound, cluster.ResourceNotFound, wire.ContextMissing:
		return 404
	case cluster.ClusterBlock, NoShardAvailable, wire.ShardNotFound, wire.NodeNotConnected, wire.TimedOut:
		return 503
	}
	return 500
}

// errTimeout is the cause of a fan-out's end when the search's time is over.
var errTimeout = errors.New("the search's time is over")

// errPanicked answers a search in which something panicked. What it was is in
// the node's log only: a panic's text may hold what belongs to others.
func errPanicked() *cluster.Error {
	return cluster.Errorf(cluster.IllegalState, "the search ended unexpectedly; the node's log says why")
}

func errClosing(node string) *cluster.Error {
	return cluster.Errorf(cluster.ClusterBlock, "node [%s] is closing", node)
}

// cancelled returns the error of a search whose context has ended.
func cancelled(ctx context.Context, search string) error {
	return fmt.Errorf("search [%s] was cancelled: %w", search, context.Cause(ctx))
}

// failureOf returns the failure of shards whose node could not be asked.
func failureOf(node string, err error) *cluster.Error {
	if e, ok := errors.AsType[*cluster.Error](err); ok {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return cluster.Errorf(wire.TimedOut, "[%s] %v", node, err)
	}
	return cluster.Errorf(wire.NodeNotConnected, "[%s] %v", node, err)
}

func errUnanswered(node string, limit time.Duration) *cluster.Error {
	return cluster.Errorf(wire.TimedOut, "node [%s] did not answer within %v", node, limit)
}

func sortFailures(failures []ShardFailure) {
	slices.SortFunc(failures, func(a, b ShardFailure) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Shard, b.Shard))
	})
}
