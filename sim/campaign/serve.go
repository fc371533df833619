package campaign

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/wlmsim/wlmsim/sim/world"
)

// MaxTask bounds the line of a task, and MaxAnswer that of an answer.
const (
	MaxTask   = 1 << 20
	MaxAnswer = 64 << 20
)

// Serve is a worker: it does the tasks that it reads from in, one after the
// other, and writes the answers to out, until in ends. If in ends during a run,
// nobody waits for the answer any more, and the process exits. The error says
// that a task could not be read or an answer not be written; what run returns
// as an error is an answer, and the worker's last.
func Serve(in io.Reader, out io.Writer, run func(Task) (*world.Result, error)) error {
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
		last, err := serve(line, out, run)
		<-busy
		if err != nil || last {
			return err
		}
	}
	return unread
}

func serve(line []byte, out io.Writer, run func(Task) (*world.Result, error)) (last bool, err error) {
	var t Task
	if err := json.Unmarshal(line, &t); err != nil {
		return false, fmt.Errorf("a task: %w", err)
	}
	var a answer
	if a.Result, err = run(t); err != nil {
		a = answer{Error: err.Error(), Last: true}
	}
	text, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("an answer: %w", err)
	}
	_, err = out.Write(append(text, '\n'))
	return a.Last, err
}
