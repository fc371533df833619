package explore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/bubble"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/wlm"
)

// A program is small actors over a few cells that the controller lets go: it
// has nothing to do with a node, so what it can do is known by counting.
type operation struct {
	kind  int // one of those below
	cell  int // of the state, buckets or counters
	value int
	mute  bool // it does not say what it touches
}

const (
	readCell = iota
	writeCell
	addCell
	takeIfFree // a bucket of one
	kinds
)

// step declares what an operation touches, as the probe's steps do.
func (o operation) step() step {
	touches := [kinds][2]probe.Touch{
		readCell:   {probe.ReadState, probe.ReadCounters},
		writeCell:  {probe.WriteState, probe.WriteCounters},
		addCell:    {probe.WriteState | probe.ReadState, probe.WriteCounters | probe.ReadCounters},
		takeIfFree: {probe.ReadBucket | probe.WriteBucket, probe.ReadBucket | probe.WriteBucket},
	}
	names := [kinds]string{"read", "write", "add", "take"}
	s := step{name: names[o.kind], ends: noLane}
	if o.mute {
		return s
	}
	if o.cell == 0 {
		s.touches = touch(touches[o.kind][0])
		s.bucket = 1
	} else {
		s.touches = touch(touches[o.kind][1])
		s.group, s.bucket = fmt.Sprint(o.cell), uint64(o.cell+1)
	}
	return s
}

type toy struct {
	control *controller
	actors  [][]operation
	cells   [3]int
	taken   [3]int
	seen    [][]int
	starts  []chan struct{}
	outcome string
	ended   chan struct{}
}

func (p *toy) begin() {
	p.cells, p.taken = [3]int{}, [3]int{}
	p.control.free = false
	for i := range p.seen {
		p.seen[i] = p.seen[i][:0]
		p.starts[i] <- struct{}{}
	}
}

func (p *toy) settle() (uint64, []step) {
	p.control.settle()
	return p.control.enabled, p.control.steps
}

func (p *toy) release(lane int) { p.control.release(p.control.lanes[lane]) }

func (p *toy) end(judged bool) {
	if !judged {
		p.control.letAll()
		return
	}
	p.outcome = fmt.Sprint(p.cells, p.taken, p.seen)
}

func (p *toy) run(i int, start <-chan struct{}) {
	for range start {
		for _, o := range p.actors[i] {
			p.control.lanes[i].park(o.step())
			p.do(i, o)
		}
	}
	p.ended <- struct{}{}
}

func (p *toy) do(i int, o operation) {
	switch o.kind {
	case readCell:
		p.seen[i] = append(p.seen[i], p.cells[o.cell])
	case writeCell:
		p.cells[o.cell] = o.value
	case addCell:
		p.cells[o.cell] += o.value
		p.seen[i] = append(p.seen[i], p.cells[o.cell])
	case takeIfFree:
		if p.taken[o.cell] == 0 {
			p.taken[o.cell] = i + 1
		}
	}
}

func newToy(actors [][]operation) *toy {
	p := &toy{control: newController(namesOf(actors)), actors: actors, seen: make([][]int, len(actors))}
	p.control.settled = func() {}
	return p
}

func namesOf(actors [][]operation) (names []string) {
	for i := range actors {
		names = append(names, fmt.Sprint("a", i))
	}
	return names
}

// within calls a function in a bubble with the goroutines of the actors.
func (p *toy) within(f func() error) error {
	var failed error
	err := bubble.Run(func() {
		p.starts, p.ended = nil, make(chan struct{}, len(p.actors))
		for i, l := range p.control.lanes {
			l.gate = make(chan struct{}, 1)
			start := make(chan struct{}, 1)
			p.starts = append(p.starts, start)
			go p.run(i, start)
		}
		defer func() {
			for i := range p.starts {
				close(p.starts[i])
				<-p.ended
			}
		}()
		failed = f()
	})
	return errors.Join(failed, err)
}

// exploreToy explores a toy and returns its outcomes and the number of whole and
// cut executions.
func exploreToy(t require.TestingT, actors [][]operation, d *dfs) (outcomes []string, whole, cut int) {
	p := newToy(actors)
	d.names = func(i int) string { return namesOf(actors)[i] }
	found := map[string]bool{}
	require.NoError(t, p.within(func() error {
		var turns []uint8
		for more := true; more; more = d.next() {
			all, done, err := play(p, 1000, d, turns[:0])
			require.NoError(t, err)
			if turns = all; done {
				whole++
				found[p.outcome] = true
			} else {
				cut++
			}
		}
		return nil
	}))
	for o := range found {
		outcomes = append(outcomes, o)
	}
	slices.Sort(outcomes)
	return outcomes, whole, cut
}

func drawProgram(t *rapid.T) [][]operation {
	one := rapid.Custom(func(t *rapid.T) operation {
		return operation{kind: rapid.IntRange(0, kinds-1).Draw(t, "kind"), cell: rapid.IntRange(0, 2).Draw(t, "cell"), value: rapid.IntRange(1, 3).Draw(t, "value")}
	})
	return rapid.SliceOfN(rapid.SliceOfN(one, 1, 3), 1, 3).Draw(t, "actors")
}

// orders is the number of orders of actors with so many turns each.
func orders(actors [][]operation) int {
	n, sum := 1, 0
	for _, a := range actors {
		for k := range a {
			sum++
			n = n * sum / (k + 1)
		}
	}
	return n
}

// Promises 1 and 2: brute force executes every order once, and the reduction
// finds the outcomes of all of them.
func TestReductionLosesNoOutcome(t *testing.T) {
	reduced, brute := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		actors := drawProgram(t)
		want, whole, cut := exploreToy(t, actors, &dfs{preemptions: -1})
		require.Equal(t, orders(actors), whole)
		require.Zero(t, cut)
		got, fewer, pruned := exploreToy(t, actors, &dfs{reduce: true, preemptions: -1})
		require.Equal(t, want, got)
		require.LessOrEqual(t, fewer, whole)
		reduced, brute = reduced+fewer+pruned, brute+whole
	})
	require.Less(t, reduced, brute, "the reduction saves something")
}

// The planted flaw of the reduction: a step that does not declare what it
// touches loses outcomes.
func TestAStepThatDeclaresTooLittleLosesOutcomes(t *testing.T) {
	write, read := operation{kind: writeCell, value: 1}, operation{kind: readCell}
	outcomes, _, _ := exploreToy(t, [][]operation{{write}, {read}}, &dfs{reduce: true, preemptions: -1})
	require.Len(t, outcomes, 2)
	write.mute = true
	outcomes, _, _ = exploreToy(t, [][]operation{{write}, {read}}, &dfs{reduce: true, preemptions: -1})
	require.Len(t, outcomes, 1)
}

// Promise 1, with a bound: as many orders as a naive count has within it.
func TestABoundOnPreemptionsCoversEveryOrderWithinIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		actors := drawProgram(t)
		bound := rapid.IntRange(0, 3).Draw(t, "bound")
		_, whole, cut := exploreToy(t, actors, &dfs{preemptions: bound})
		left := make([]int, len(actors))
		for i, a := range actors {
			left[i] = len(a)
		}
		require.Equal(t, countBounded(left, noLane, bound), whole)
		require.Zero(t, cut)
	})
}

// countBounded counts the orders with at most so many preemptions.
func countBounded(left []int, last, bound int) int {
	n, any := 0, false
	for i := range left {
		if left[i] == 0 {
			continue
		}
		any = true
		cost := 0
		if last != noLane && i != last && left[last] > 0 {
			cost = 1
		}
		if cost > bound {
			continue
		}
		left[i]--
		n += countBounded(left, i, bound-cost)
		left[i]++
	}
	if !any {
		return 1
	}
	return n
}

// Promise 3: what the controller does not control is noticed.
func TestAnotherCourseOfTheSameScheduleIsAnError(t *testing.T) {
	d := &dfs{preemptions: -1, names: func(i int) string { return fmt.Sprint("a", i) }}
	steps := []step{{name: "one"}, {name: "two"}}
	_, err := d.choose(0, 3, steps, noLane)
	require.NoError(t, err)
	_, err = d.choose(1, 3, steps, 0)
	require.NoError(t, err)
	require.True(t, d.next())
	_, err = d.choose(0, 2, steps, noLane)
	require.ErrorIs(t, err, errDiverged)
	require.ErrorContains(t, err, "before turn 1 the lanes [a1] can go, and could [a0 a1] before")
	_, err = d.choose(0, 3, []step{{name: "one"}, {name: "other"}}, noLane)
	require.ErrorContains(t, err, "lane a1 is at other, and was at two before")
}

func TestSchedulesPrintAsTheyParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Schedule(rapid.SliceOf(rapid.SampledFrom([]string{"a", "b2", "applier", "m1.applier", "m1>d2.raft", "d2>m1.gossip.3", "cluster.time"})).Draw(t, "schedule"))
		again, err := ParseSchedule(s.String())
		require.NoError(t, err)
		require.Equal(t, []string(s), append([]string{}, again...))
		starred, err := ParseSchedule(strings.ReplaceAll(s.String(), "×", "*"))
		require.NoError(t, err)
		require.Equal(t, again, starred)
	})
}

func FuzzParseSchedule(f *testing.F) {
	for _, seed := range []string{"", "a", "a×3 b*2", "a×0", "×3", "a×99999999999999999999", "a×100000 b", "ä"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchedule(text)
		if err != nil {
			return
		}
		again, err := ParseSchedule(s.String())
		require.NoError(t, err)
		require.Equal(t, s, again)
	})
}

// Budget: three actors with four steps each, 34,650 orders, bare.
func BenchmarkBareController(b *testing.B) {
	actor := slices.Repeat([]operation{{kind: addCell, value: 1}}, 4)
	n := 0
	for b.Loop() {
		_, whole, _ := exploreToy(b, [][]operation{actor, actor, actor}, &dfs{preemptions: -1})
		require.Equal(b, 34650, whole)
		n += whole
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "schedules/s")
}

// Promise 2, on the node: to pass the steps that touch nothing loses no outcome
// either.
func TestToPassStepsThatTouchNothingLosesNoOutcome(t *testing.T) {
	for _, name := range []string{"explore/exact-permits-refuse-nobody-needlessly", "regression/a-swallowed-rejection-runs-without-a-permit", "explore/management-goes-off-between-reading-and-admission", "regression/stats-fail-while-a-plain-map-changes"} {
		f, err := scenario.Read("../../scenarios/" + name + ".yaml")
		require.NoError(t, err)
		o := Options{Workers: 1}.withDefaults(false)
		seen := map[bool][]string{}
		for _, every := range []bool{false, true} {
			w, err := prepare(f.Filled())
			require.NoError(t, err)
			w.everyStep = every
			table := tableOf(w, o.Turns)
			require.NoError(t, table.explore(o))
			require.Empty(t, table.trouble)
			require.True(t, table.complete)
			for key := range table.outcomes {
				seen[every] = append(seen[every], key)
			}
			slices.Sort(seen[every])
		}
		require.Equal(t, seen[true], seen[false], name)
	}
}

// Promise 2, on the node: the outcomes of the reduced and the unreduced search
// are the same.
func TestReductionLosesNoOutcomeOfTheNode(t *testing.T) {
	for _, name := range []string{"regression/a-rollback-refuses-one-too-many", "regression/a-comma-makes-two-users-one", "explore/management-goes-off-between-reading-and-admission", "regression/stats-fail-while-a-plain-map-changes", "explore/a-cancel-meets-the-last-answer"} {
		f, err := scenario.Read("../../scenarios/" + name + ".yaml")
		require.NoError(t, err)
		var seen [2][]string
		for i, o := range []Options{{}, {NoReduction: true}} {
			r, err := Run(f, o)
			require.NoError(t, err)
			require.True(t, r.Complete)
			for k := range r.Outcomes {
				seen[i] = append(seen[i], r.Outcomes[k].values())
			}
			slices.Sort(seen[i])
		}
		require.Equal(t, seen[1], seen[0], name)
	}
}

// sampler is a context that looks at the memory now and then: it is asked
// before each schedule.
type sampler struct {
	context.Context
	asked   int
	samples []uint64
}

func (s *sampler) Err() error {
	if s.asked++; s.asked%1000 == 0 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		s.samples = append(s.samples, m.HeapAlloc+m.StackInuse)
	}
	return nil
}

// Promise 6: memory stays level. WLMSIM_SOAK runs a million schedules.
func TestMemoryStaysLevel(t *testing.T) {
	schedules := 4_000
	if os.Getenv("WLMSIM_SOAK") != "" {
		schedules = 1_000_000
	}
	f, err := scenario.Read("../../scenarios/explore/the-registration-lag.yaml")
	require.NoError(t, err)
	s := &sampler{Context: t.Context()}
	_, err = Run(f, Options{Strategy: Random, Schedules: schedules, Context: s})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(s.samples), 3)
	before, after := s.samples[0], s.samples[len(s.samples)-1]
	t.Logf("heap and stacks after the first 1,000 executions %d KiB, at most %d KiB, at the end of %d %d KiB",
		before>>10, slices.Max(s.samples)>>10, schedules, after>>10)
	require.Less(t, after, before+1<<20, "of %d samples", len(s.samples))
}

// meddler is a context that does something between schedules.
type meddler struct {
	context.Context
	meddle func()
}

func (m meddler) Err() error {
	m.meddle()
	return nil
}

// Promise 3, its planted flaw: a node that is another one in every second
// execution leaves the verdict open, whichever way it is noticed.
func TestWhatIsNotControlledLeavesTheVerdictOpen(t *testing.T) {
	f, err := scenario.Read("../../scenarios/explore/exact-permits-refuse-nobody-needlessly.yaml")
	require.NoError(t, err)
	for _, row := range []struct {
		options Options
		trouble string
	}{
		{Options{}, "the same schedule took another course: before turn"},
		{Options{Schedule: Schedule{}}, "the same schedule took another course or gave another outcome"},
	} {
		o := row.options.withDefaults(false)
		w, err := prepare(f.Filled())
		require.NoError(t, err)
		o.Context = meddler{t.Context(), func() {
			w.switches.Acquire = map[wlm.Acquire]wlm.Acquire{wlm.AcquireExact: wlm.AcquireRollback, wlm.AcquireRollback: wlm.AcquireExact}[w.switches.Acquire]
		}}
		table := tableOf(w, o.Turns)
		o.Workers = 1
		require.NoError(t, table.explore(o))
		if o.Strategy == Replay { // nothing asks between the executions of one schedule
			_ = o.Context.Err()
			require.NoError(t, table.explore(o))
		}
		r := table.result(o)
		require.Equal(t, check.Undecided, r.Verdict)
		require.False(t, r.Complete)
		require.Contains(t, table.trouble, row.trouble)
	}
}
