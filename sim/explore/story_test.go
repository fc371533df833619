package explore

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/history"
)

// A whole cluster's story: messages of which nothing comes are folded, what a
// lane does in one turn is one line, and the window says on which node it
// opens and closes.
func TestTheStoryOfAWholeCluster(t *testing.T) {
	const update, m1, d1, road, back = 0, 1, 2, 3, 4
	event := func(turn, lane int, node, kind string) laneEvent {
		return laneEvent{lane, history.Event{At: time.Duration(turn), Node: node, Kind: kind, Version: 7}}
	}
	r := &Result{Strategy: Replay, lanes: []string{"update", "m1.applier", "d1.applier", "m1>d1.raft", "d1>m1.raft", "m1>d2.raft"}}
	put := event(1, update, "", history.WriteBegin)
	put.Detail = "put_group late"
	r.Outcomes = []Outcome{{Observed: Observed{{"put", 200}}, trace: []laneEvent{
		event(0, update, "m1", "before.anything"),
		put,
		event(2, road, "", message), event(3, road, "", message), event(4, back, "", message),
		event(5, road, "", message),
		event(5, d1, "d1", string(probe.ApplierReceived)), event(5, d1, "d1", string(probe.ApplierApply)),
		event(6, m1, "m1", string(probe.ApplierPublished)),
		event(7, d1, "d1", string(probe.ApplierPublished)),
		event(8, back, "", message), event(9, back, "", message),
		event(10, m1, "m1", string(probe.ApplierNotified)),
		event(11, d1, "d1", string(probe.ApplierNotified)),
		event(12, road, "", message), event(12, update, "", history.WriteEnd),
	}}}
	stories := r.Stories()
	require.Len(t, stories, 1)
	require.Equal(t, "put 200", stories[0].Title)
	require.Equal(t, `
  turn            update  m1.applier  d1.applier  messages
  1               ●                                         put_group late
  2–4                                             ●         m1>d1.raft×2, d1>m1.raft
  5                                               ●         m1>d1.raft
                                      ●                     applier.received v7, applier.apply v7
  6     lag ┌ m1          ●                                 applier.published v7
  7         ├ d1                      ●                     applier.published v7
  8–9       │                                     ●         d1>m1.raft×2
  10        ┤ m1          ●                                 applier.notified v7
  11        └ d1                      ●                     applier.notified v7
  12                                              ●         m1>d1.raft
                  ●                                         → no answer
`, "\n"+strings.Join(stories[0].Lines, "\n")+"\n")
}

// A window that opens and closes in one turn of one lane is two lines.
func TestAWindowIsNotFoldedAway(t *testing.T) {
	var trace []laneEvent
	for _, kind := range []probe.Step{probe.ApplierApply, probe.ApplierPublished, probe.ApplierNotify, probe.ApplierNotified} {
		trace = append(trace, laneEvent{0, history.Event{At: 1, Node: "m1", Kind: string(kind)}})
	}
	r := &Result{lanes: []string{"applier"}}
	require.Equal(t, `
  turn         applier
  1     lag ┌  ●        applier.apply, applier.published, applier.notify
            └  ●        applier.notified
`, "\n"+strings.Join(r.story(trace), "\n")+"\n")
}

// What broke in a schedule that is no outcome's shortest is shown, too, and a
// schedule that shows two things is shown once.
func TestWhatBrokeIsShownStepByStep(t *testing.T) {
	trace := []laneEvent{{0, history.Event{At: 1, Kind: history.RequestSent}}}
	broken := check.Result{Name: "permits_return", Verdict: check.Broken}
	r := &Result{
		lanes:    []string{"first"},
		Outcomes: []Outcome{{Schedule: "first", trace: trace}},
		Checks: []Check{
			{Result: broken, Schedule: "first×2", trace: trace},
			{Result: check.Result{Name: "one_outcome", Verdict: check.Broken}, Schedule: "first"},
			{Result: check.Result{Name: "rejection_kept", Verdict: check.Broken}, Schedule: "first"},
			{Result: check.Result{Name: "states_equal", Verdict: check.Held}, Schedule: "first×3", trace: trace},
		},
	}
	var titles []string
	for _, s := range r.Stories() {
		titles = append(titles, s.Title)
	}
	require.Equal(t, []string{"permits_return", "one_outcome"}, titles)
}
