package cluster

import (
	"errors"
	"fmt"
)

// Kind says what sort of refusal an [Error] is. Its text is the type name that
// OpenSearch puts into an error body; package rest turns it into a status.
type Kind string

// The kinds of refusal.
const (
	// IllegalArgument: the request asks for something that is not allowed (400).
	IllegalArgument Kind = "illegal_argument_exception"
	// Parsing: the body is not what the route takes (400).
	Parsing Kind = "parsing_exception"
	// Validation: a rule or a setting breaks a bound (400).
	Validation Kind = "validation_exception"
	// ResourceNotFound: no group or rule of that name or id (404).
	ResourceNotFound Kind = "resource_not_found_exception"
	// IndexNotFound: no index of that name (404).
	IndexNotFound Kind = "index_not_found_exception"
	// ResourceExists: an index of that name is there already (400).
	ResourceExists Kind = "resource_already_exists_exception"
	// IllegalState: the cluster is not in a state that allows the request (500).
	IllegalState Kind = "illegal_state_exception"
	// NullPointer: a part that must be given is missing; upstream answers a
	// null pointer exception for it (500).
	NullPointer Kind = "null_pointer_exception"
	// TooMany: a bound on how many there may be is reached, or a permit is
	// refused (429).
	TooMany Kind = "rejected_execution_exception"
	// ClusterBlock: the node has no leader or has not caught up (503).
	ClusterBlock Kind = "cluster_block_exception"
	// NotDiscovered: no leader was found in time (503).
	NotDiscovered Kind = "cluster_manager_not_discovered_exception"
	// OutcomeUnknown: the leader was lost while a command was under way; it
	// may or may not have been committed (503).
	OutcomeUnknown Kind = "process_cluster_event_timeout_exception"
)

// Error is a refusal with its kind and a message for the client. It is
// returned by [Command.Validate], [Apply] and everything that forwards them,
// and it survives the way from node to node.
type Error struct {
	Kind   Kind   `json:"type"`
	Reason string `json:"reason"`
}

// Error returns the reason.
func (e *Error) Error() string { return e.Reason }

// Errorf makes an [Error] of a kind with a formatted reason.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Reason: fmt.Sprintf(format, args...)}
}

// KindOf returns the kind of the [Error] in err's chain, or "" if there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}
