package netsim

import (
	"errors"
	"fmt"
	"time"
)

// Config describes a network. The zero value is one with the defaults below.
type Config struct {
	// Seed is what all draws follow from.
	Seed uint64
	// Link is how every link between two hosts behaves unless SetLink says
	// otherwise. Default: latency 1ms..5ms, nothing else.
	Link Faults
	// Loopback is the link of a host with itself, which no cut touches.
	// Default: latency 10µs..30µs.
	Loopback Faults
	// Window is how many bytes of a stream may be written and not yet read, in
	// each direction. Default: 65,536, as TCP without scaling.
	Window int
	// Queue is how many datagrams wait in a socket; more are dropped.
	// Default: 1,024.
	Queue int
	// UnderWay is how many datagrams are under way on a link; more are
	// dropped. Default: 16,384.
	UnderWay int
	// Backlog is how many connections wait to be accepted; more are refused.
	// Default: 1,024.
	Backlog int
	// DialTimeout ends a dial that nobody answers. Default: 127 s, as Linux.
	DialTimeout time.Duration
	// Retransmit is the wait before a lost message of a stream is sent again;
	// it doubles each time, up to 120 s. Default: 200 ms, as Linux.
	Retransmit time.Duration
	// Taps see every byte that is sent. Default: none.
	Taps []Tap
	// Observe is told of each event on the network's goroutine, in order of
	// delivery, after it took effect. It must not wait, nor call Close.
	// Default: nobody.
	Observe func(Delivery)
}

// filled returns the config with its defaults.
func (c Config) filled() Config {
	fill(&c.Link.Latency, Range{Min: time.Millisecond, Max: 5 * time.Millisecond})
	fill(&c.Loopback.Latency, Range{Min: 10 * time.Microsecond, Max: 30 * time.Microsecond})
	fill(&c.Window, 1<<16)
	fill(&c.Queue, 1024)
	fill(&c.UnderWay, 16384)
	fill(&c.Backlog, 1024)
	fill(&c.DialTimeout, 127*time.Second)
	fill(&c.Retransmit, 200*time.Millisecond)
	return c
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// check reports every fault of a config at once.
func (c Config) check() error {
	errs := []error{named("link", c.Link.check()), named("loopback", c.Loopback.check())}
	positive := func(name string, value int64) {
		if value <= 0 {
			errs = append(errs, fmt.Errorf("%s %d must be positive", name, value))
		}
	}
	positive("window", int64(c.Window))
	positive("queue", int64(c.Queue))
	positive("under way", int64(c.UnderWay))
	positive("backlog", int64(c.Backlog))
	positive("dial timeout", int64(c.DialTimeout))
	positive("retransmit", int64(c.Retransmit))
	return errors.Join(errs...)
}

func named(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}
