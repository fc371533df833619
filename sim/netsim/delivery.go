package netsim

import (
	"fmt"
	"time"
)

// Kind says what happened at the far end of a link.
type Kind uint8

// The kinds of deliveries.
const (
	Datagram  Kind = iota + 1 // a datagram came into its socket's queue
	Dropped                   // a datagram arrived and was dropped; Why says why
	Dialled                   // a dial reached its host
	Refused                   // the refusal of a dial reached the dialer
	Connected                 // the yes to a dial reached the dialer
	Data                      // bytes of a stream arrived
	End                       // the end of one direction of a stream arrived
	Reset                     // a reset arrived
)

// String returns the kind in lower case.
func (k Kind) String() string {
	names := [...]string{"", "datagram", "dropped", "dialled", "refused", "connected", "data", "end", "reset"}
	if k == 0 || int(k) >= len(names) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return names[k]
}

// Why says why a datagram was dropped on arrival.
type Why uint8

// The reasons.
const (
	ByCut     Why = iota + 1 // a cut began while it was under way
	QueueFull                // its socket's queue was full
	NoSocket                 // nobody listens on the port, or the host is down
)

// String returns the reason in words.
func (w Why) String() string {
	names := [...]string{"", "by a cut", "queue full", "no socket"}
	if w == 0 || int(w) >= len(names) {
		return fmt.Sprintf("why %d", int(w))
	}
	return names[w]
}

// Delivery is one event of the network.
type Delivery struct {
	// At is the time since the network was made.
	At       time.Duration
	Kind     Kind
	Why      Why // for Dropped
	From, To string
	// Port is the destination's for datagrams, the listener's for streams.
	Port int
	// Stream numbers the connections of the network from 1; 0 for datagrams.
	Stream uint64
	Bytes  int
}

// String returns the delivery in one line, such as
// "1.5ms m1 -> m2 :7946 datagram 120".
func (d Delivery) String() string {
	line := fmt.Sprintf("%s %s -> %s :%d %s", d.At, d.From, d.To, d.Port, d.Kind)
	if d.Why != 0 {
		line += " " + d.Why.String()
	}
	if d.Stream != 0 {
		line += fmt.Sprintf(" #%d", d.Stream)
	}
	if d.Bytes != 0 {
		line += fmt.Sprintf(" %d", d.Bytes)
	}
	return line
}

// Stats counts what happened on a network so far.
type Stats struct {
	// Dials counts those begun, Refusals those that no listener took.
	Dials, Refusals uint64
	// StreamBytes counts the bytes written to streams.
	StreamBytes uint64
	// Retransmissions counts the messages of streams that a link lost at least
	// once.
	Retransmissions uint64
	// Sent counts datagrams written, Delivered those that came into a queue,
	// copies included.
	Sent, Delivered uint64
	// Lost, Cut, Full and Unheard count datagrams that did not: by the link's
	// loss, by a cut, by a full queue or link, by a port nobody listens on.
	Lost, Cut, Full, Unheard uint64
	// Duplicated and Reordered count those doubled and those held back.
	Duplicated, Reordered uint64
}
