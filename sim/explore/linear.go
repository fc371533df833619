package explore

import (
	"fmt"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// streamed are the promises that are judged anew on every schedule. The
// remaining one, whether the history of the groups is linearizable, costs more
// than all else, and few of the schedules differ in that history.
var streamed = func() []scenario.Promise {
	var names []scenario.Promise
	for _, m := range scenario.Promises() {
		if m.Promise != scenario.HistoryLinearizable {
			names = append(names, m.Promise)
		}
	}
	return names
}()

// maxLinear bounds the histories whose verdicts are kept.
const maxLinear = 10_000

// operation notes an operation on groups. What it answered follows from its
// action, the version that it made or read, and its error.
func (w *world) operation(op check.Operation, action *scenario.Action, version uint64) {
	w.operations = append(w.operations, op)
	w.explained = fmt.Appendf(w.explained, "%p %T %d %v;", action, op.Command, version, op.Err)
}

// linear judges the history of the groups, or remembers the verdict on an equal
// one: the same operations with the same answers, of which the same ones ended
// before others began.
func (t *table) linear(w *world, f *check.Facts) check.Result {
	key := append(t.linearKey[:0], w.explained...)
	for i := range f.Operations {
		for k := range f.Operations {
			key = append(key, "01"[b2i(f.Operations[i].Return < f.Operations[k].Call)])
		}
	}
	t.linearKey = key
	if r, ok := t.linears[string(key)]; ok {
		return r
	}
	if f.Operations == nil {
		f.Operations = []check.Operation{} // each would have been noted
	}
	r := check.All(scenario.HistoryLinearizable)[0].Finish(f)
	if len(t.linears) < maxLinear {
		t.linears[string(key)] = r
	}
	return r
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
