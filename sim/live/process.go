package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/wlmsim/wlmsim/cluster"
)

// Event is a line that a node's process writes to its standard output.
type Event struct {
	Event  string `json:"event"`
	Name   string `json:"name"`
	Leader string `json:"leader,omitempty"` // of EventReady: who leads
	Addresses
	Refusal *cluster.Error `json:"refusal,omitempty"` // of EventProposed: why the command was refused
}

// The events of a node's process.
const (
	EventStarted  = "started"  // it listens
	EventReady    = "ready"    // it has caught up with the cluster
	EventProposed = "proposed" // a command from its standard input has been answered
)

// Process is a node in a process of its own. Its standard input takes a
// command of the cluster a line, and stays open as long as the node shall run,
// so that it ends with its parent.
type Process struct {
	name      string
	addresses Addresses
	command   *exec.Cmd
	input     io.WriteCloser
	answers   chan Event    // EventProposed
	ready     chan struct{} // closed at EventReady
	leader    string        // read it after ready
	ended     chan struct{} // closed when the process has ended
	err       error         // how it ended; read it after ended
}

// stopTimeout bounds how long a process may take to stop when it is asked to.
const stopTimeout = 10 * time.Second

// StartProcess runs a command that starts the node of a name and writes an
// [Event] a line, and returns when it has started. What it writes to standard
// error goes to stderr.
func StartProcess(name, path string, args []string, stderr io.Writer) (*Process, error) {
	p := &Process{name: name, command: exec.Command(path, args...), answers: make(chan Event, 1), ready: make(chan struct{}), ended: make(chan struct{})}
	p.command.Stderr = stderr
	input, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.input = input
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	started := make(chan Addresses, 1)
	go p.follow(output, started)
	select {
	case p.addresses = <-started:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("the process ended before it had started: %w", p.err)
	}
}

// follow reads the events until the process closes its output, and waits for
// its end.
func (p *Process) follow(output io.Reader, started chan<- Addresses) {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // what a library writes is not for us
		}
		switch e.Event {
		case EventStarted:
			started <- e.Addresses
		case EventReady:
			p.leader = e.Leader
			close(p.ready)
		case EventProposed:
			p.answers <- e
		}
	}
	p.err = p.command.Wait()
	if p.err == nil {
		p.err = errors.New("it exited by itself")
	}
	close(p.ended)
}

// Name implements [Member].
func (p *Process) Name() string { return p.name }

// Where implements [Member].
func (p *Process) Where() Addresses { return p.addresses }

// Ready implements [Member].
func (p *Process) Ready(ctx context.Context) (string, error) {
	select {
	case <-p.ready:
		return p.leader, nil
	case <-p.ended:
		return "", p.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// PID implements [Member].
func (p *Process) PID() int { return p.command.Process.Pid }

// Propose implements [Member]. It may be called by one goroutine at a time.
func (p *Process) Propose(ctx context.Context, c cluster.Command) error {
	line, err := cluster.EncodeCommand(c)
	if err != nil {
		return err
	}
	if _, err := p.input.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("node %s: %w", p.name, err)
	}
	select {
	case e := <-p.answers:
		if e.Refusal != nil {
			return e.Refusal
		}
		return nil
	case <-p.ended:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Kill ends the process at once, as `kill -9` does, and waits for it.
func (p *Process) Kill() {
	_ = p.command.Process.Kill() // it may have ended already
	<-p.ended
	_ = p.input.Close()
}

// Close asks the process to stop and waits for it; one that does not stop in
// time is killed, which is an error.
func (p *Process) Close() error {
	_ = p.input.Close() // the process sees the end of its input
	select {
	case <-p.ended:
		if p.command.ProcessState.Success() {
			return nil
		}
		return fmt.Errorf("node %s: %w", p.name, p.err)
	case <-time.After(stopTimeout):
		p.Kill()
		return fmt.Errorf("node %s did not stop within %v and was killed", p.name, stopTimeout)
	}
}
