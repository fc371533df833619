package check

import (
	"fmt"
	"strconv"

	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// findings are the breaches of one promise, and what is missing to judge it.
// Of each only the first is kept in words.
type findings struct {
	broken  string
	count   int
	unclear string
}

// add notes a breach: a sentence that is always the same, and its values.
func (f *findings) add(sentence, values string, args ...any) {
	if f.count == 0 {
		f.broken = sentence + ": " + fmt.Sprintf(values, args...)
	}
	f.count++
}

// lack notes what keeps the check from judging.
func (f *findings) lack(format string, args ...any) {
	if f.unclear == "" {
		f.unclear = fmt.Sprintf(format, args...)
	}
}

// result judges: a breach is one whatever else is not known.
func (f *findings) result(name scenario.Promise) Result {
	r := Result{Name: string(name), Verdict: Held}
	switch {
	case f.count > 1:
		r.Verdict, r.Message = Broken, f.broken+"; and "+strconv.Itoa(f.count-1)+" more"
	case f.count == 1:
		r.Verdict, r.Message = Broken, f.broken
	case f.unclear != "":
		r.Verdict, r.Message = Undecided, f.unclear
	}
	return r
}

// life names one life of a node.
type life struct {
	node   string
	number int
}

func lifeOf(e *history.Event) life { return life{e.Node, e.Life} }

func (l life) String() string { return "node " + l.node + ", life " + strconv.Itoa(l.number) }

// request names a search at its coordinator.
type request struct{ node, search string }

func requestOf(e *history.Event) request { return request{e.Node, e.Search} }

// groupOf is a group in one life.
type groupOf struct {
	life
	group string
}
