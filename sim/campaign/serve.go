package campaign

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/shrink"
	"github.com/wlmsim/wlmsim/sim/world"
)

// MaxTask bounds the line of a task, and MaxAnswer that of an answer.
const (
	MaxTask   = 1 << 20
	MaxAnswer = 64 << 20
)

// Worker does what a worker process is asked for, one thing at a time. [Doer]
// is the one that does the work.
type Worker interface {
	Do(Task) (*world.Result, error)
	Explore(Exploration) (*explore.Result, error)
	Shrink(Shrinking) (*shrink.Shrunk, error)
}

// Serve is a worker: it does the tasks that it reads from in, one after the
// other, and writes the answers to out, until in ends. If in ends during a run,
// nobody waits for the answer any more, and the process exits. The error says
// that a task could not be read or an answer not be written; what w returns
// as an error is an answer, and the worker's last.
func Serve(in io.Reader, out io.Writer, w Worker) error {
	tasks := make(chan []byte)
	busy := make(chan struct{}, 1) // holds one from the reading of a task to its answer
	var unread error               // read it when tasks is closed
	go func() {                    // ends with the input, at the latest when the process ends
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, MaxTask)
		for lines.Scan() {
			busy <- struct{}{}
			tasks <- append([]byte(nil), lines.Bytes()...)
		}
		select {
		case busy <- struct{}{}:
		default:
			os.Exit(0)
		}
		unread = lines.Err()
		close(tasks)
	}()
	for line := range tasks {
		last, err := serve(line, out, w)
		<-busy
		if err != nil || last {
			return err
		}
	}
	return unread
}

func serve(line []byte, out io.Writer, w Worker) (last bool, err error) {
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return false, fmt.Errorf("a task: %w", err)
	}
	a := o.carryOut(w)
	text, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("an answer: %w", err)
	}
	_, err = out.Write(append(text, '\n'))
	return a.Last, err
}

func (o *order) carryOut(w Worker) answer {
	var a answer
	var err error
	switch {
	case o.Run != nil:
		a.Result, err = w.Do(*o.Run)
	case o.Explore != nil:
		var r *explore.Result
		if r, err = w.Explore(*o.Explore); err == nil {
			a.Explored, err = r.MarshalBinary()
		}
	case o.Shrink != nil:
		a.Shrunk, err = shrunk(o.Shrink, w)
	default:
		err = errors.New("a task that is neither a run nor an exploration nor to shrink one")
	}
	if err != nil {
		return answer{Error: err.Error(), Misfit: errors.Is(err, explore.ErrUsage), Last: true}
	}
	return a
}

func shrunk(s *Shrinking, w Worker) (*shrunkAnswer, error) {
	small, err := w.Shrink(*s)
	switch {
	case errors.Is(err, shrink.ErrNothing):
		return &shrunkAnswer{Nothing: true}, nil
	case err != nil:
		return nil, err
	}
	return &shrunkAnswer{Text: small.Text(s.Path), Tried: small.Tried, Least: small.Least}, nil
}
