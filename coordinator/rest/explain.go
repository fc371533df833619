package rest

import (
	"errors"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/coordinator"
)

// Explain returns what a client is shown for an error, of a search or of a
// command: the HTTP status, and the type and reason of the error body. Worlds
// that call a node without HTTP use it, so that there is one table.
func Explain(err error) (status int, kind, reason string) {
	if search, ok := errors.AsType[*coordinator.SearchError](err); ok {
		return search.Status, string(coordinator.SearchFailed), search.Reason
	}
	e := refusal(err)
	status, kind, reason = StatusOf(e.Kind), string(e.Kind), e.Reason
	if e.Kind == cluster.Validation {
		kind, reason = string(cluster.IllegalArgument), validationReason(e)
	}
	return status, kind, reason
}
