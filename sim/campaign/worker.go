package campaign

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// MaxNoise bounds what is kept of what a worker writes to standard error during
// a run. The goroutines of the largest cluster need a few megabytes.
const MaxNoise = 8 << 20

// dumpTimeout bounds how long a worker may take to print its goroutines.
const dumpTimeout = 20 * time.Second

// worker is a process that does runs. It belongs to one goroutine.
type worker struct {
	command *exec.Cmd
	in      io.WriteCloser
	answers chan answer
	noise   *noise
	ended   chan struct{} // closed when the process has ended
	err     error         // how it ended; read it after ended
}

// startWorker starts a command that calls [Serve].
func startWorker(command *exec.Cmd) (*worker, error) {
	w := &worker{command: command, answers: make(chan answer, 1), noise: &noise{}, ended: make(chan struct{})}
	command.Stderr = w.noise
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	w.in = in
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	go w.follow(out)
	return w, nil
}

// follow reads answers until the process closes its output, and waits for its
// end. A line that is no answer ends the process.
func (w *worker) follow(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, MaxAnswer)
	var strange error
	for strange == nil && lines.Scan() {
		var a answer
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&a); err != nil || a.Result == nil && a.Explored == nil && a.Shrunk == nil && a.Error == "" {
			strange = fmt.Errorf("it wrote %.200q, which is no answer", lines.Text())
			break
		}
		w.answers <- a // never waits: each answer is taken before the next task is given
	}
	if strange = errors.Join(strange, lines.Err()); strange != nil {
		_ = w.command.Process.Kill() // it may have ended already
	}
	w.err = w.command.Wait()
	if strange != nil {
		w.err = strange
	} else if w.err == nil {
		w.err = errors.New("it exited by itself")
	}
	close(w.ended)
}

// death is why a worker did not answer: the process ended, or the limit was
// over.
type death struct {
	how   error         // how the process ended by itself
	limit time.Duration // that was over; 0: it was not
	noise string        // what it wrote to standard error
}

func (d *death) Error() string {
	if d.limit > 0 {
		return fmt.Sprintf("the run did not end within %v of wall time; virtual time was held up by:\n%s", d.limit, culprits(d.noise))
	}
	how := fmt.Sprintf("the process of the run ended: %v", d.how)
	if failed, ok := errors.AsType[*exec.ExitError](d.how); ok && failed.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		how += ", as by a system that is out of memory"
	}
	return strings.TrimSpace(how + "\n" + beginning(d.noise))
}

// do has the worker carry out an order. After an error of any kind the worker
// has ended. The limit is that of the whole, or with moves that of the time in
// which what moves returns stays the same.
func (w *worker) do(ctx context.Context, o *order, limit time.Duration, moves func() any) (answer, error) {
	line, err := json.Marshal(o)
	if err != nil {
		w.kill()
		return answer{}, err
	}
	w.noise.reset()
	if _, err := w.in.Write(append(line, '\n')); err != nil {
		w.kill()
		return answer{}, &death{how: w.err, noise: w.noise.text()}
	}
	patience := patience{looks: 1, moves: moves}
	if moves != nil {
		patience.looks, patience.before = looks, moves()
	}
	watchdog := time.NewTicker(max(limit/time.Duration(patience.looks), 1))
	defer watchdog.Stop()
	for {
		select {
		case a := <-w.answers:
			return a, nil
		case <-w.ended:
			select {
			case a := <-w.answers: // it ended right after its last answer
				return a, nil
			default:
			}
			return answer{}, &death{how: w.err, noise: w.noise.text()}
		case <-watchdog.C:
			if !patience.over() {
				continue
			}
			w.dump()
			return answer{}, &death{limit: limit, noise: w.noise.text()}
		case <-ctx.Done():
			if o.Run == nil {
				if a, ok := w.part(); ok {
					return a, nil
				}
			}
			w.kill()
			return answer{}, ctx.Err()
		}
	}
}

// looks is how often within the limit one looks whether work moves on.
const looks = 10

// patience is with a worker that does not answer. It ends after so many looks
// in a row that saw nothing move.
type patience struct {
	looks, still int
	moves        func() any // nil: nothing is seen to move
	before       any
}

func (p *patience) over() bool {
	p.still++
	if p.moves != nil {
		if now := p.moves(); now != p.before {
			p.before, p.still = now, 0
		}
	}
	return p.still >= p.looks
}

// part has the process answer with what it has, and says whether it did. The
// signal may meet a process that has just answered, and ends it then.
func (w *worker) part() (answer, bool) {
	if w.command.Process.Signal(syscall.SIGTERM) == nil {
		select {
		case a := <-w.answers:
			return a, true
		case <-w.ended:
		case <-time.After(partingGrace):
		}
	}
	select {
	case a := <-w.answers:
		return a, true
	default:
		return answer{}, false
	}
}

// dump makes the process print its goroutines and end.
func (w *worker) dump() {
	if w.command.Process.Signal(syscall.SIGQUIT) == nil {
		select {
		case <-w.ended:
			return
		case <-time.After(dumpTimeout):
		}
	}
	w.kill()
}

// kill ends the process at once and waits for it.
func (w *worker) kill() {
	_ = w.command.Process.Kill() // it may have ended already
	<-w.ended
}

// close lets the process end by itself.
func (w *worker) close() {
	_ = w.in.Close() // it may have ended already
	select {
	case <-w.ended:
	case <-time.After(dumpTimeout):
		w.kill()
	}
}

// noise keeps the first MaxNoise bytes that were written since it was reset: a
// panic says first what it is about.
type noise struct {
	mu   sync.Mutex
	kept []byte
}

func (n *noise) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept = append(n.kept, p[:min(len(p), MaxNoise-len(n.kept))]...)
	return len(p), nil
}

func (n *noise) reset() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept = n.kept[:0]
}

func (n *noise) text() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return string(n.kept)
}
