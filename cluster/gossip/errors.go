package gossip

import (
	"errors"
	"fmt"
)

var (
	// ErrUnknownMember: no member of that name is known, or it has left. Nothing was sent.
	ErrUnknownMember = errors.New("gossip: unknown member")
	// ErrGone: the member died, or its stream broke, before an answer came. Unless the error is ErrNotSent too, the
	// outcome is unknown: the member may have done what was asked.
	ErrGone = errors.New("gossip: member is gone")
	// ErrNotSent accompanies ErrGone when the message surely never reached the member.
	ErrNotSent = errors.New("gossip: message was not sent")
	// ErrFull: the member's outbox has reached Bounds.OutboxMessages or Bounds.OutboxBytes. Nothing was sent.
	ErrFull = errors.New("gossip: outbox is full")
	// ErrBusy: the member handles Bounds.Handled requests already and did not handle this one.
	ErrBusy = errors.New("gossip: member handles as many requests as it may")
	// ErrTooLarge: the body exceeds Bounds.MessageBytes. Nothing was sent.
	ErrTooLarge = errors.New("gossip: message is too large")
	// ErrNameTaken: another node answers under this node's name. The node has withdrawn; it can only be closed.
	ErrNameTaken = errors.New("gossip: name is taken")
	// ErrClosed: the node was closed, or has left. The outcome of a request under way is unknown.
	ErrClosed = errors.New("gossip: closed")

	errMalformed = errors.New("gossip: malformed message")
	// errLost is why a call ended whose peer is there and does not have the request.
	errLost = errors.New("it is there, but the request or its answer was lost on the way")
)

// RemoteError is what the handler of another member returned.
type RemoteError struct {
	// Member is the name of the member that handled the request.
	Member string
	// Text is the text of the handler's error.
	Text string
}

// Error returns the handler's text behind the member's name.
func (e *RemoteError) Error() string { return fmt.Sprintf("%s: %s", e.Member, e.Text) }

// goneError says that a member is gone, and whether the message can have reached it.
func goneError(name string, sent bool, cause error) error {
	err := fmt.Errorf("%w: %s", ErrGone, name)
	if !sent {
		err = fmt.Errorf("%w: %w", err, ErrNotSent)
	}
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
