package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

// toyTable returns a table that executes a toy, for so many turns at the most.
// Half of its outcomes break a promise.
func toyTable(actors [][]operation, most, portion int) *table {
	p := newToy(actors)
	t := newTable(&scenario.File{Seed: 7, Explore: &scenario.Explore{}}, programs{}, namesOf(actors))
	t.run = func(c chooser, taken []uint8, _ bool) ([]uint8, bool, []laneEvent, error) {
		turns, whole, err := play(p, most, c, taken)
		t.key = append(t.key[:0], p.outcome...)
		t.results = append(t.results[:0], check.Result{Name: "odd", Verdict: check.Held})
		if hashOf(p.outcome)%2 == 1 {
			t.results[0].Verdict, t.results[0].Message = check.Broken, p.outcome
		}
		return turns, whole, nil, err
	}
	t.within, t.portion = p.within, portion
	t.hire = func(int) (*table, error) { return toyTable(actors, most, portion), nil }
	return t
}

// told is all that a table knows.
func told(t *table) string {
	var b strings.Builder
	fmt.Fprintln(&b, t.schedules, t.pruned, t.complete, t.trouble, t.news)
	for _, key := range t.keys() {
		o := t.outcomes[key]
		fmt.Fprintln(&b, key, o.Schedules, o.Preemptions, o.turns)
	}
	for name, r := range t.breaches {
		fmt.Fprintln(&b, name, *r)
	}
	return b.String()
}

// Promise 5: the result does not depend on how many workers there are, whatever
// ends the exploration.
func TestWorkersDoNotChangeTheResult(t *testing.T) {
	none, one, three := 0, 1, 3
	side := 0
	rapid.Check(t, func(t *rapid.T) {
		actors := drawProgram(t)
		o := Options{
			Strategy:    rapid.SampledFrom(Strategies()).Draw(t, "strategy"),
			Schedules:   rapid.SampledFrom([]int{0, 1, 2, 3, 7, 50, 200}).Draw(t, "schedules"),
			NoReduction: rapid.Bool().Draw(t, "no reduction"),
			Preemptions: rapid.SampledFrom([]*int{nil, nil, &none, &one, &three}).Draw(t, "preemptions"),
		}
		if o.Strategy != DFS && o.Schedules == 0 {
			o.Schedules = 300
		}
		most := rapid.SampledFrom([]int{4, 6, 1000}).Draw(t, "turns")
		portion := rapid.IntRange(1, 5).Draw(t, "portion")
		enough := rapid.SampledFrom([]int{2, 1000}).Draw(t, "enough")
		var want string
		for _, o.Workers = range []int{1, 2, 4} {
			x := toyTable(actors, most, portion)
			hire := x.hire
			x.hire = func(number int) (*table, error) {
				if number > 0 {
					side++
				}
				return hire(number)
			}
			asked := 0
			o := o.withDefaults(false)
			if enough < 1000 {
				o.Until = func(*Result) bool { asked++; return asked == enough }
			}
			require.NoError(t, x.explore(o))
			if want == "" {
				want = told(x)
			}
			require.Equal(t, want, told(x), "%d workers", o.Workers)
		}
	})
	require.Positive(t, side, "some worked side by side")
}

// Promise 5: who asks for one thing alone is asked after every schedule that
// showed something new, also after the last one of a row of draws.
func TestWorkersAskAsOneDoes(t *testing.T) {
	for _, strategy := range Strategies() {
		for enough := 1; enough <= 40; enough++ {
			want := ""
			for _, workers := range []int{1, 3} {
				x := toyTable(wide(addCell), 1000, 2)
				o := Options{Strategy: strategy, NoReduction: true, Schedules: 300, Workers: workers}.withDefaults(false)
				asked := 0
				o.Until = func(*Result) bool { asked++; return asked == enough }
				require.NoError(t, x.explore(o))
				require.Equal(t, enough, asked)
				if want == "" {
					want = told(x)
				}
				require.Equal(t, want, told(x), "%s, ended by the answer to question %d", strategy, enough)
			}
		}
	}
}

// Promises 1 and 5: every part of a search that is cut up has orders of its own,
// and together they are all.
func TestPartsOfASearchAreAllOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		actors := drawProgram(t)
		p := newToy(actors)
		left := []*dfs{{preemptions: -1, names: func(i int) string { return namesOf(actors)[i] }}}
		whole := map[string]bool{}
		n := 0
		require.NoError(t, p.within(func() error {
			for len(left) > 0 {
				i := rapid.IntRange(0, len(left)-1).Draw(t, "which")
				d := left[i]
				turns, done, err := play(p, 1000, d, nil)
				require.NoError(t, err)
				require.True(t, done)
				whole[fmt.Sprint(turns)] = true
				n++
				if !d.next() {
					left = append(left[:i], left[i+1:]...)
				} else if rest := d.split(); rest != nil {
					left = append(left, rest.(*dfs))
				}
			}
			return nil
		}))
		require.Equal(t, orders(actors), n)
		require.Len(t, whole, n)
	})
}

// wide is a program with 1,680 orders.
func wide(kind int) [][]operation {
	actor := []operation{{kind: kind, value: 1}, {kind: kind, value: 1}, {kind: kind, value: 1}}
	return [][]operation{actor, actor, actor}
}

// Promise 3: a worker that meets other steps than the one before it is noticed.
func TestAWorkerThatTakesAnotherCourseIsNoticed(t *testing.T) {
	x := toyTable(wide(addCell), 1000, 4)
	x.hire = func(int) (*table, error) { return toyTable(wide(takeIfFree), 1000, 4), nil }
	require.NoError(t, x.explore(Options{NoReduction: true, Workers: 2}.withDefaults(false)))
	require.Contains(t, x.trouble, "the same schedule took another course: before turn")
	require.False(t, x.complete)
	require.Equal(t, 8, x.schedules, "what was executed before")
}

// Promise 3: what does not repeat covers no order, since nobody knows which one
// it was.
func TestWhatDoesNotRepeatIsNotCovered(t *testing.T) {
	x := toyTable(wide(addCell), 1000, 4)
	run, first := x.run, true
	x.run = func(c chooser, taken []uint8, traced bool) ([]uint8, bool, []laneEvent, error) {
		turns, whole, events, err := run(c, taken, traced)
		if traced && first {
			x.key, first = append(x.key, '!'), false
		}
		return turns, whole, events, err
	}
	require.NoError(t, x.explore(Options{Workers: 2}.withDefaults(false)))
	require.Contains(t, x.trouble, "the same schedule took another course or gave another outcome")
	require.False(t, x.complete)
}

// Promise 5: however many outcomes there are, each has the preemptions of its
// schedule, and what broke has its steps.
func TestManyOutcomesHaveTheirPreemptions(t *testing.T) {
	x := toyTable(wide(addCell), 1000, 4)
	run := x.run
	x.run = func(c chooser, taken []uint8, traced bool) ([]uint8, bool, []laneEvent, error) {
		turns, whole, _, err := run(c, taken, traced)
		x.key = fmt.Append(x.key[:0], hashOf(string(x.key))>>16%400)
		x.results[0].Verdict = check.Held
		if o := x.outcomes[string(x.key)]; o != nil && shorter(o.turns, turns) { // so its schedule is no outcome's
			x.results[0].Verdict = check.Broken
		}
		return turns, whole, []laneEvent{}, err
	}
	require.NoError(t, x.explore(Options{NoReduction: true, Workers: 1}.withDefaults(false)))
	require.Greater(t, len(x.outcomes), maxConfirmed)
	for key, o := range x.outcomes {
		lanes, counted := []int{}, 0
		for _, lane := range o.turns {
			lanes = append(lanes, int(lane))
		}
		require.NoError(t, x.within(func() error {
			_, _, _, err := x.run(&counting{&replay{lanes: lanes, names: x.name}, &counted}, nil, true)
			return err
		}))
		require.Equal(t, key, string(x.key))
		require.Equal(t, counted, o.Preemptions, o.turns)
	}
	b := x.breaches["odd"]
	require.NotNil(t, b)
	require.NotNil(t, b.trace)
}

// An end that comes when the schedules of outcomes are executed again does not
// wait for all of them.
func TestAnEndDoesNotWaitForWhatIsExecutedAgain(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	x := toyTable(wide(addCell), 1000, 4)
	run, again := x.run, 0
	x.run = func(c chooser, taken []uint8, traced bool) ([]uint8, bool, []laneEvent, error) {
		if traced {
			again++
			end()
		}
		return run(c, taken, traced)
	}
	require.ErrorIs(t, x.explore(Options{Context: ctx, Workers: 2}.withDefaults(false)), context.Canceled)
	require.Greater(t, len(x.outcomes), 1)
	require.Equal(t, 2, again, "of the first outcome alone")
}

// A worker that fails ends the exploration with its error, and the others end
// too: the package's tests leave no goroutine.
func TestAWorkerThatFailsEndsTheExploration(t *testing.T) {
	for name, spoil := range map[string]func(x *table){
		"planted": func(x *table) {
			x.run = func(chooser, []uint8, bool) ([]uint8, bool, []laneEvent, error) {
				return nil, false, nil, errors.New("planted")
			}
		},
		"not entered": func(x *table) { x.within = func(func() error) error { return errors.New("not entered") } },
		"the function panicked": func(x *table) {
			x.run = func(chooser, []uint8, bool) ([]uint8, bool, []laneEvent, error) { panic("planted") }
		},
	} {
		x := toyTable(wide(addCell), 1000, 4)
		hire := x.hire
		x.hire = func(number int) (*table, error) {
			one, err := hire(number)
			spoil(one)
			return one, err
		}
		err := x.explore(Options{NoReduction: true, Workers: 3}.withDefaults(false))
		require.ErrorContains(t, err, name)
		require.False(t, x.complete)
	}
	x := toyTable(wide(addCell), 1000, 4)
	x.hire = func(int) (*table, error) { return nil, errors.New("nobody to hire") }
	require.ErrorContains(t, x.explore(Options{NoReduction: true, Workers: 2}.withDefaults(false)), "nobody to hire")
}

// What a worker met beyond the last schedule that was asked for is not told: one
// worker alone would not have come so far.
func TestWhatWasNotAskedForIsNotTold(t *testing.T) {
	o := Options{NoReduction: true, Schedules: 12, Workers: 1}.withDefaults(false)
	first := map[string]bool{}
	watched := func(x *table, seen func(string)) {
		run := x.run
		x.run = func(c chooser, taken []uint8, traced bool) ([]uint8, bool, []laneEvent, error) {
			turns, whole, events, err := run(c, taken, traced)
			seen(fmt.Sprint(turns))
			return turns, whole, events, err
		}
	}
	x := toyTable(wide(addCell), 1000, 4)
	watched(x, func(turns string) { first[turns] = true })
	require.NoError(t, x.explore(o))
	want := told(x)

	spoiling := func(int) (*table, error) {
		one, spoilt := toyTable(wide(addCell), 1000, 4), error(nil)
		watched(one, func(turns string) {
			if !first[turns] {
				one.trouble, spoilt = "beyond", errors.New("spoilt")
			}
		})
		within := one.within
		one.within = func(f func() error) error { return errors.Join(within(f), spoilt) }
		return one, nil
	}
	o.Workers = 3
	x = toyTable(wide(addCell), 1000, 4)
	x.hire = spoiling
	require.NoError(t, x.explore(o))
	require.Equal(t, want, told(x))

	o.Schedules = 13
	x = toyTable(wide(addCell), 1000, 4)
	x.hire = spoiling
	require.ErrorContains(t, x.explore(o), "spoilt")
	require.Equal(t, "beyond", x.trouble)
}

// What ends a worker beyond the last schedule that was asked for is not told
// either, wherever that schedule lies in its part.
func TestAPanicThatWasNotAskedForIsNotTold(t *testing.T) {
	watch := func(x *table, seen func(turns string)) {
		run := x.run
		x.run = func(c chooser, taken []uint8, traced bool) ([]uint8, bool, []laneEvent, error) {
			turns, whole, events, err := run(c, taken, traced)
			seen(fmt.Sprint(turns))
			return turns, whole, events, err
		}
	}
	for _, strategy := range []string{DFS, Random} {
		for bound := 9; bound < 30; bound++ {
			o := Options{Strategy: strategy, NoReduction: true, Schedules: bound, Workers: 1}.withDefaults(false)
			asked := map[string]bool{}
			x := toyTable(wide(addCell), 1000, 4)
			watch(x, func(turns string) { asked[turns] = true })
			require.NoError(t, x.explore(o))
			want := told(x)
			x = toyTable(wide(addCell), 1000, 4)
			hire := x.hire
			x.hire = func(number int) (*table, error) {
				one, err := hire(number)
				watch(one, func(turns string) {
					if !asked[turns] {
						panic("not asked for")
					}
				})
				return one, err
			}
			o.Workers = 3
			require.NoError(t, x.explore(o), "%s, %d schedules", strategy, bound)
			require.Equal(t, want, told(x))
		}
	}
}

// Promise 5, on the node: every file of the folder. WLMSIM_SOAK executes all
// orders.
func TestWorkersDoNotChangeTheResultOfTheNode(t *testing.T) {
	paths, err := filepath.Glob("../../scenarios/explore/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 15)
	bound, most := 1, 150
	if os.Getenv("WLMSIM_SOAK") != "" {
		most = 0
	}
	for _, path := range paths {
		f, err := scenario.Read(path)
		require.NoError(t, err)
		for _, o := range []Options{
			{Schedules: most}, {NoReduction: true, Schedules: cmp.Or(most, 20_000)}, {Preemptions: &bound, Schedules: most},
			{Strategy: Random, Schedules: cmp.Or(most, 2_000)}, {Strategy: PCT, Schedules: cmp.Or(most, 2_000)},
		} {
			o.Workers = 1
			alone, err := Run(f, o)
			require.NoError(t, err)
			o.Workers = 3
			together, err := Run(f, o)
			require.NoError(t, err)
			alone.WallSeconds, together.WallSeconds = 0, 0
			require.Equal(t, alone, together, "%s %+v", path, o)
		}
	}
}
