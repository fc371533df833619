package rest

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/task"
	"github.com/wlmsim/wlmsim/cluster/wire"
	"github.com/wlmsim/wlmsim/coordinator"
)

// statuses is the one table from a kind of refusal to an HTTP status.
var statuses = map[cluster.Kind]int{
	cluster.IllegalArgument:      http.StatusBadRequest,
	cluster.Parsing:              http.StatusBadRequest,
	cluster.Validation:           http.StatusBadRequest,
	cluster.ResourceExists:       http.StatusBadRequest,
	cluster.ResourceNotFound:     http.StatusNotFound,
	cluster.IndexNotFound:        http.StatusNotFound,
	cluster.TooMany:              http.StatusTooManyRequests,
	cluster.IllegalState:         http.StatusInternalServerError,
	cluster.NullPointer:          http.StatusInternalServerError,
	cluster.ClusterBlock:         http.StatusServiceUnavailable,
	cluster.NotDiscovered:        http.StatusServiceUnavailable,
	cluster.OutcomeUnknown:       http.StatusServiceUnavailable,
	wire.ShardNotFound:           http.StatusServiceUnavailable,
	wire.NodeNotConnected:        http.StatusServiceUnavailable,
	wire.TimedOut:                http.StatusServiceUnavailable,
	wire.ContextMissing:          http.StatusNotFound,
	coordinator.NoShardAvailable: http.StatusServiceUnavailable,
	parseFault:                   http.StatusBadRequest,
	actionValidation:             http.StatusBadRequest,
	security:                     http.StatusForbidden,
	taskCancelled:                http.StatusInternalServerError,
	unexpected:                   http.StatusInternalServerError,
}

// The kinds of refusal that only the HTTP API has.
const (
	parseFault       cluster.Kind = "parse_exception"
	actionValidation cluster.Kind = "action_request_validation_exception"
	security         cluster.Kind = "security_exception"
	taskCancelled                 = task.Cancelled
	unexpected       cluster.Kind = "exception"
)

// StatusOf returns the HTTP status that a refusal of a kind is answered with;
// 500 for a kind that it does not know.
func StatusOf(kind cluster.Kind) int {
	if status, known := statuses[kind]; known {
		return status
	}
	return http.StatusInternalServerError
}

// plainError is an answer whose error is one line of text, as OpenSearch gives
// it where no handler was found.
type plainError struct {
	status  int
	reason  string
	allow   string // for a method that the route does not have
	details string // if given, the answer has them in place of the status
}

func (e *plainError) Error() string { return e.reason }

// parseFailure is a refusal of a parameter that upstream calls a fault of
// parsing.
func parseFailure(reason string) error { return cluster.Errorf(parseFault, "%s", reason) }

// challenge is a refusal for want of valid credentials.
type challenge struct{}

func (challenge) Error() string { return "Unauthorized" }

// outcomeUnknown are the words by which a client knows that a write may or may
// not have happened.
const outcomeUnknown = "outcome unknown"

// refusal turns any error into the one that the client is shown.
func refusal(err error) *cluster.Error {
	if e, ok := errors.AsType[*cluster.Error](err); ok {
		if e.Kind == cluster.OutcomeUnknown && !strings.Contains(e.Reason, outcomeUnknown) {
			return cluster.Errorf(e.Kind, "%s: %s", outcomeUnknown, e.Reason)
		}
		return e
	}
	switch {
	case errors.Is(err, context.Canceled):
		return cluster.Errorf(taskCancelled, "The task was cancelled: %v", err)
	case errors.Is(err, context.DeadlineExceeded):
		return cluster.Errorf(cluster.OutcomeUnknown, "%s: %v", outcomeUnknown, err)
	}
	return cluster.Errorf(unexpected, "%v", err)
}

// fail makes the answer of c the one for err.
func (c *call) fail(err error) {
	c.out.b, c.text, c.failed = c.out.b[:0], false, true
	if plain, ok := errors.AsType[*plainError](err); ok {
		c.status = plain.status
		if plain.allow != "" {
			c.header("Allow", plain.allow)
		}
		c.out.object(func() {
			c.out.name("error").text(plain.reason)
			if plain.details != "" {
				c.out.name("details").text(plain.details)
				return
			}
			c.out.name("status").integer(int64(plain.status))
		})
		return
	}
	if errors.Is(err, challenge{}) {
		c.status = http.StatusUnauthorized
		c.header("Www-Authenticate", `Basic realm="wlmsim", charset="UTF-8"`)
		c.out.object(func() {
			c.out.name("error").text(err.Error())
			c.out.name("status").integer(http.StatusUnauthorized)
		})
		return
	}
	if search, ok := errors.AsType[*coordinator.SearchError](err); ok {
		c.failSearch(search)
		return
	}
	c.refuse(refusal(err))
}

// refuse writes the error object of a refusal.
func (c *call) refuse(e *cluster.Error) {
	c.status = StatusOf(e.Kind)
	c.out.object(func() {
		c.out.name("error").object(func() {
			c.out.name("root_cause").array(func() { c.out.object(func() { c.out.cause(e) }) })
			c.out.cause(e)
			if e.Kind == cluster.Validation {
				c.out.name("caused_by").object(func() {
					c.out.name("type").text(string(e.Kind))
					c.out.name("reason").text(validationText(e))
				})
			}
		})
		c.out.name("status").integer(int64(c.status))
	})
}

// cause writes the members of an error object. A rule's validation error comes
// wrapped, as upstream's does.
func (e *encoder) cause(err *cluster.Error) {
	if err.Kind == cluster.Validation {
		e.name("type").text(string(cluster.IllegalArgument))
		e.name("reason").text(validationReason(err))
		return
	}
	e.name("type").text(string(err.Kind))
	e.name("reason").text(err.Reason)
	if index, ok := missingIndex(err); ok {
		e.name("index").text(index)
		e.name("resource.id").text(index)
		e.name("resource.type").text("index_or_alias")
		e.name("index_uuid").text("_na_")
	}
}

// validationReason is the reason of a rule's validation error, which upstream
// wraps.
func validationReason(e *cluster.Error) string {
	return "org.opensearch.common.ValidationException: " + validationText(e)
}

func validationText(e *cluster.Error) string { return "Validation Failed: 1: " + e.Reason + ";" }

// missingIndex returns the name in `no such index [name]`.
func missingIndex(e *cluster.Error) (string, bool) {
	name, ok := strings.CutPrefix(e.Reason, "no such index [")
	if !ok || e.Kind != cluster.IndexNotFound {
		return "", false
	}
	return strings.CutSuffix(name, "]")
}
