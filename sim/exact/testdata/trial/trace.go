package main

import (
	"fmt"
	"hash"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/netsim"
)

// trace collects what happens: steps of nodes, deliveries and bytes of the
// network, and the clients' answers, each with its virtual time.
type trace struct {
	began time.Time
	list  bool

	mu     sync.Mutex
	sum    hash.Hash64
	events int
	lines  strings.Builder
}

func (t *trace) hash() uint64 { return t.sum.Sum64() }

// note writes an event down.
func (t *trace) note(what string, values ...any) {
	line := fmt.Sprintln(append([]any{time.Since(t.began).Nanoseconds(), what}, values...)...)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sum == nil {
		t.sum = fnv.New64a()
	}
	t.events++
	_, _ = t.sum.Write([]byte(line))
	if t.list {
		t.lines.WriteString(line)
	}
}

// Reach makes the trace a hook of every node.
func (t *trace) Reach(e probe.Event) { t.note("step", fmt.Sprintf("%+v", e)) }

// Stream and Datagram make it a tap of the network.
func (t *trace) Stream(f netsim.Flow) func([]byte) {
	return func(b []byte) { t.note("stream", f, len(b), sumOf(b)) }
}

func (t *trace) Datagram(f netsim.Flow, b []byte) { t.note("datagram", f, len(b), sumOf(b)) }

func sumOf(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64()
}
