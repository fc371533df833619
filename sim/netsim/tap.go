package netsim

// Flow is where bytes come from and where they go.
type Flow struct {
	From, To string // names of hosts
	// FromPort and ToPort are the sender's and the receiver's; the one that
	// was dialled from is an arbitrary high one.
	FromPort, ToPort int
	// Stream numbers the connections of the network from 1; 0 for datagrams.
	Stream uint64
}

// Tap sees everything that is sent, on the sender's goroutine and before it can
// arrive. It must not wait, nor keep the bytes. It is called by many goroutines
// at once, but by one at a time for one direction of one stream.
type Tap interface {
	// Stream is called once for each direction of a new connection. The
	// function that it returns is given the bytes in order, cut into pieces
	// in any way; nil if it does not care.
	Stream(Flow) func([]byte)
	// Datagram is called for each datagram.
	Datagram(Flow, []byte)
}

// sinks asks every tap for its function.
func sinks(taps []Tap, flow Flow) (found []func([]byte)) {
	for _, tap := range taps {
		if sink := tap.Stream(flow); sink != nil {
			found = append(found, sink)
		}
	}
	return found
}
