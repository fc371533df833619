package check_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/coordinator"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/wlm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at makes an event of a step of node m1's first life.
func at(step probe.Step, search string, more ...func(*history.Event)) history.Event {
	e := history.Event{Kind: string(step), Node: "m1", Life: 1, Search: search, Group: "g"}
	for _, set := range more {
		set(&e)
	}
	return e
}

// Fields of events.
func bucket(b uint64) func(*history.Event) { return func(e *history.Event) { e.Bucket = b } }
func fill(held, limit int) func(*history.Event) {
	return func(e *history.Event) { e.Held, e.Limit = held, limit }
}
func version(v uint64) func(*history.Event)    { return func(e *history.Event) { e.Version = v } }
func listener(l string) func(*history.Event)   { return func(e *history.Event) { e.Listener = l } }
func detail(d string) func(*history.Event)     { return func(e *history.Event) { e.Detail = d } }
func inLife(n int) func(*history.Event)        { return func(e *history.Event) { e.Life = n } }
func onNode(name string) func(*history.Event)  { return func(e *history.Event) { e.Node = name } }
func ofGroup(name string) func(*history.Event) { return func(e *history.Event) { e.Group = name } }

func acquired(search string, held, limit int) history.Event {
	return at(probe.Acquired, search, bucket(7), fill(held, limit))
}
func merged(search string) history.Event   { return at(probe.Merged, search, bucket(7)) }
func released(search string) history.Event { return at(probe.Released, search, bucket(7)) }
func read(search string) history.Event     { return at(probe.CoordinatorRead, search) }
func rejected(search string) history.Event {
	return at(probe.Rejected, search, bucket(7), fill(1, 1), detail("group"))
}
func counted(search, on string) history.Event {
	return at(probe.Counted, search, bucket(7), fill(1, 1), detail(on))
}
func sent(search string) history.Event {
	return history.Event{Kind: history.RequestSent, Node: "m1", Search: search, Detail: history.PrincipalKey("bob", []string{"analyst"})}
}
func answered(search string, code int) history.Event {
	return history.Event{Kind: history.RequestAnswered, Node: "m1", Search: search, Status: code}
}

// admittedRun and refusedRun are all events of one search.
func admittedRun(search string) []history.Event {
	return []history.Event{
		sent(search), read(search), at(probe.AcquireBegin, search, bucket(7), detail("group")), acquired(search, 1, 1),
		at(probe.FannedOut, search, bucket(7)), merged(search), released(search), answered(search, 200),
	}
}
func refusedRun(search string) []history.Event {
	return []history.Event{
		sent(search), read(search), at(probe.AcquireBegin, search, bucket(7), detail("group")),
		rejected(search), counted(search, "g"), answered(search, 429),
	}
}

// books are those of node m1's first life.
func books(completed, throttled, uncounted uint64, stats ...wlm.GroupStats) check.Life {
	return check.Life{
		Node: "m1", Number: 1, Stats: stats,
		Outcomes: []coordinator.GroupOutcomes{{Group: "g", Completed: completed, Throttled: throttled, Uncounted: uncounted}},
	}
}

func throttledOf(group string, n uint64) wlm.GroupStats {
	return wlm.GroupStats{ID: group, Throttled: n}
}

func facts(lives ...check.Life) *check.Facts {
	if lives == nil {
		lives = []check.Life{}
	}
	return &check.Facts{Lives: lives}
}

func events(parts ...any) []history.Event {
	var all []history.Event
	for _, p := range parts {
		switch p := p.(type) {
		case history.Event:
			all = append(all, p)
		case []history.Event:
			all = append(all, p...)
		}
	}
	for i := range all {
		all[i].Seq, all[i].At = uint64(i)+1, time.Duration(i)*time.Millisecond
	}
	return all
}

// judge runs one check over events and facts.
func judge(name scenario.Promise, events []history.Event, f *check.Facts) check.Result {
	set := check.NewSet(name)
	for _, e := range events {
		set.Observe(e)
	}
	return set.Finish(f)[0]
}

// judgement is one row of a check's table.
type judgement struct {
	name   string
	events []history.Event
	facts  *check.Facts
	want   check.Verdict
	says   string // how the message of a verdict that is not held begins
}

func judgeAll(t *testing.T, promise scenario.Promise, rows []judgement) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if row.facts == nil {
				row.facts = &check.Facts{}
			}
			r := judge(promise, row.events, row.facts)
			require.Equal(t, string(promise), r.Name)
			require.Equal(t, row.want, r.Verdict, r.Message)
			require.True(t, strings.HasPrefix(r.Message, row.says), r.Message)
			require.Equal(t, row.want == check.Held, r.Message == "")
			require.Equal(t, r.Message == "", row.says == "", r.Message)
		})
	}
}
