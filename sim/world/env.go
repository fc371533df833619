package world

import (
	"fmt"
	"strings"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

// env is what expressions know at this moment.
func (w *world) env() scenario.Env {
	loads := map[string]scenario.LoadAnswer{}
	for _, l := range w.loads {
		loads[l.spec.Name] = l.answer()
	}
	return scenario.Env{
		Answers: w.answers.all(), Loads: loads,
		Stats: w.statsOf, Outcomes: w.outcomesOf, Permits: w.permitsOf, State: w.stateOf,
		BucketPeak: func(node, group string) (int, error) {
			peak := 0
			for _, id := range w.ids.allGroups(group) {
				peak = max(peak, w.peaks.peak(node, id))
			}
			return peak, nil
		},
	}
}

// up returns the life of a node, or why there is none.
func (w *world) up(name string) (*life, error) {
	m := w.member(name)
	if m == nil {
		return nil, fmt.Errorf("there is no node %s", name)
	}
	if l := m.current.Load(); l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("node %s is down", name)
}

// statsOf returns the counters of a group on a node, or summed over all that
// are up.
func (w *world) statsOf(node, group string) (scenario.Stats, error) {
	id := w.ids.group(group)
	if node != "" {
		l, err := w.up(node)
		if err != nil {
			return scenario.Stats{}, err
		}
		return statsOf(l.node, id)
	}
	var total scenario.Stats
	for _, m := range w.list() {
		l := m.current.Load()
		if l == nil {
			continue
		}
		one, err := statsOf(l.node, id)
		if err != nil {
			return total, err
		}
		total.TotalCompletions += one.TotalCompletions
		total.TotalRejections += one.TotalRejections
		total.TotalCancellations += one.TotalCancellations
		total.TotalThrottled += one.TotalThrottled
		total.TotalWouldThrottle += one.TotalWouldThrottle
	}
	return total, nil
}

// outcomesOf returns how a coordinator's searches ended, of every group a name
// had, or of all.
func (w *world) outcomesOf(node, group string) (scenario.Outcomes, error) {
	l, err := w.up(node)
	if err != nil {
		return scenario.Outcomes{}, err
	}
	ids := map[string]bool{}
	for _, id := range w.ids.allGroups(group) {
		ids[id] = true
	}
	var total scenario.Outcomes
	for _, o := range l.node.Coordinator().Outcomes() {
		if group != "" && !ids[o.Group] {
			continue
		}
		total.Completed += int(o.Completed)
		total.Failed += int(o.Failed)
		total.Throttled += int(o.Throttled)
		total.Cancelled += int(o.Cancelled)
		total.Uncounted += int(o.Uncounted)
	}
	return total, nil
}

func (w *world) permitsOf(node, group string) (scenario.Permits, error) {
	l, err := w.up(node)
	if err != nil {
		return scenario.Permits{}, err
	}
	id := w.ids.group(group)
	for _, p := range l.node.Throttle().Permits() {
		if p.Group == id {
			return scenario.Permits{Held: p.Held, Buckets: p.Buckets}, nil
		}
	}
	return scenario.Permits{}, nil
}

func (w *world) stateOf(node string) (scenario.NodeState, error) {
	l, err := w.up(node)
	if err != nil {
		return scenario.NodeState{}, err
	}
	n := l.node
	return scenario.NodeState{
		Version: int(n.State().Version()), Leader: n.Leader(),
		RulesVersion: int(n.Coordinator().RulesVersion()), Members: len(alive(n.Members())),
	}, nil
}

// asksForPeaks says whether an expression of the file mentions bucket_peak.
func asksForPeaks(f *scenario.File) bool {
	all := append([]scenario.Expression(nil), f.Expect...)
	for _, s := range f.Steps {
		all = append(all, s.Expect...)
	}
	for _, e := range all {
		if strings.Contains(string(e), "bucket_peak") {
			return true
		}
	}
	return false
}
