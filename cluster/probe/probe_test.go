package probe_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Promise 1.
func TestHooksSeeEachEventInOrderOnTheGoroutineThatReachedTheStep(t *testing.T) {
	var seen []string
	note := func(name string) probe.Hook {
		return probe.HookFunc(func(e probe.Event) { seen = append(seen, name+" "+e.Node+" "+string(e.Step)) })
	}
	p := probe.New("m1", note("first"), note("second"))
	require.True(t, p.On())
	p.At(probe.Event{Step: probe.Acquired, Node: "somebody else"})
	p.At(probe.Event{Step: probe.Released})
	require.Equal(t, []string{
		"first m1 wlm.acquired", "second m1 wlm.acquired",
		"first m1 coordinator.released", "second m1 coordinator.released",
	}, seen)
}

func TestANilProbeDoesNothing(t *testing.T) {
	p := probe.New("m1")
	require.Nil(t, p)
	require.False(t, p.On())
	p.At(probe.Event{Step: probe.Acquired})
	require.Zero(t, testing.AllocsPerRun(100, func() { p.At(probe.Event{Step: probe.Acquired, Group: "g"}) }))
}

// A step that is declared and missing from the list could not be held.
func TestEveryStepOfTheSourceIsListedOnceWithWhatItMeans(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "step.go", nil, 0)
	require.NoError(t, err)
	var declared []probe.Step
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Step" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			declared = append(declared, probe.Step(text))
		}
		return true
	})
	require.NotEmpty(t, declared)
	require.Equal(t, declared, probe.Steps())
	for _, s := range probe.Steps() {
		require.NotEmpty(t, s.About(), "%s", s)
	}
	require.Empty(t, probe.Step("applier.guessed").About())
}

// arrive lets n goroutines reach a step and returns what waits for them.
func arrive(h *probe.Holds, events ...probe.Event) *sync.WaitGroup {
	var group sync.WaitGroup
	for _, e := range events {
		group.Go(func() { h.Reach(e) })
	}
	return &group
}

// Promise 2, outside a bubble: nothing but the hold itself is waited for.
func TestAHoldParksMatchingArrivalsUntilItIsReleased(t *testing.T) {
	var h probe.Holds
	require.NoError(t, h.Hold(probe.ApplierNotify, probe.Filter{Listener: "wlm"}))
	require.Equal(t, []probe.Step{probe.ApplierNotify}, h.Active())
	h.Reach(probe.Event{Step: probe.ApplierNotify, Listener: "other"}) // would block for ever if it were parked
	h.Reach(probe.Event{Step: probe.ApplierPublished, Listener: "wlm"})
	parked := arrive(&h, probe.Event{Step: probe.ApplierNotify, Listener: "wlm", Version: 3})
	require.True(t, h.Await(t.Context().Done(), probe.ApplierNotify, 1))
	require.Equal(t, []probe.Event{{Step: probe.ApplierNotify, Listener: "wlm", Version: 3}}, h.Parked(probe.ApplierNotify))
	require.True(t, h.Release(probe.ApplierNotify))
	parked.Wait()
	require.False(t, h.Release(probe.ApplierNotify), "it is held no more")
	require.Empty(t, h.Active())
	require.Nil(t, h.Parked(probe.ApplierNotify))
	h.Reach(probe.Event{Step: probe.ApplierNotify, Listener: "wlm"})
}

func TestACountBoundsHowManyArrivalsAreParked(t *testing.T) {
	var h probe.Holds
	require.NoError(t, h.Hold(probe.Acquired, probe.Filter{Count: 2}))
	parked := arrive(&h, probe.Event{Step: probe.Acquired}, probe.Event{Step: probe.Acquired})
	require.True(t, h.Await(t.Context().Done(), probe.Acquired, 2))
	h.Reach(probe.Event{Step: probe.Acquired}) // the third passes
	require.Len(t, h.Parked(probe.Acquired), 2)
	h.Release(probe.Acquired)
	parked.Wait()
}

func TestHoldsOfOneStepAreReleasedOneByOneOrTogether(t *testing.T) {
	var h probe.Holds
	one, two := probe.Filter{Search: "one"}, probe.Filter{Search: "two"}
	require.NoError(t, h.Hold(probe.DataNodeAnswer, one))
	require.NoError(t, h.Hold(probe.DataNodeAnswer, two))
	require.NoError(t, h.Hold(probe.Merge, probe.Filter{}))
	require.ErrorContains(t, h.Hold(probe.DataNodeAnswer, one), `step "datanode.answer" is held with filter`)
	require.Equal(t, []probe.Step{probe.DataNodeAnswer, probe.Merge}, h.Active())

	first := arrive(&h, probe.Event{Step: probe.DataNodeAnswer, Search: "one"})
	require.True(t, h.Await(t.Context().Done(), probe.DataNodeAnswer, 1))
	second := arrive(&h, probe.Event{Step: probe.DataNodeAnswer, Search: "two"})
	require.True(t, h.Await(t.Context().Done(), probe.DataNodeAnswer, 2))

	require.False(t, h.ReleaseOne(probe.DataNodeAnswer, probe.Filter{}), "a filter is named exactly")
	require.True(t, h.ReleaseOne(probe.DataNodeAnswer, one))
	first.Wait()
	require.Equal(t, []probe.Event{{Step: probe.DataNodeAnswer, Search: "two"}}, h.Parked(probe.DataNodeAnswer))
	require.True(t, h.Release(probe.DataNodeAnswer))
	second.Wait()
	require.Equal(t, []probe.Step{probe.Merge}, h.Active())
}

func TestAwaitEndsWithTheHoldOrWithDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h probe.Holds
		require.False(t, h.Await(nil, probe.Merge, 0), "not held")
		require.NoError(t, h.Hold(probe.Merge, probe.Filter{}))
		require.True(t, h.Await(nil, probe.Merge, 0))
		done := make(chan struct{})
		close(done)
		require.False(t, h.Await(done, probe.Merge, 1))
		answer := make(chan bool)
		go func() { answer <- h.Await(nil, probe.Merge, 1) }()
		synctest.Wait() // the waiter is blocked now
		h.Release(probe.Merge)
		require.False(t, <-answer)
	})
}

// Promise 3.
func TestCloseLetsEverythingGoForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h probe.Holds
		require.NoError(t, h.Hold(probe.Merge, probe.Filter{}))
		require.NoError(t, h.Hold(probe.Acquired, probe.Filter{}))
		parked := arrive(&h, probe.Event{Step: probe.Merge}, probe.Event{Step: probe.Acquired})
		synctest.Wait()
		require.Len(t, h.Parked(probe.Merge), 1)
		h.Close()
		h.Close()
		parked.Wait()
		require.ErrorContains(t, h.Hold(probe.Merge, probe.Filter{}), "the node is closing")
		h.Reach(probe.Event{Step: probe.Merge})
		require.Empty(t, h.Active())
	})
}

func TestHoldRefusesWhatCannotBeHeld(t *testing.T) {
	var h probe.Holds
	require.EqualError(t, h.Hold("applier.guessed", probe.Filter{}), fmt.Sprintf("step %q is unknown: one of %v", "applier.guessed", probe.Steps()))
	require.EqualError(t, h.Hold(probe.Merge, probe.Filter{Count: -1}), "count -1 is negative: 0 for no bound, or how many arrivals to park")
	require.Empty(t, h.Active())
}

// Holds against a list of holds that is walked by hand.
func TestHoldsAgreeWithANaiveModel(t *testing.T) {
	type held struct {
		step   probe.Step
		filter probe.Filter
		parked []probe.Event
	}
	steps := []probe.Step{probe.Merge, probe.Acquired}
	rapid.Check(t, func(t *rapid.T) {
		var h probe.Holds
		var model []*held
		var group sync.WaitGroup
		defer func() { h.Close(); group.Wait() }()
		step := func() probe.Step { return rapid.SampledFrom(steps).Draw(t, "step") }
		filter := func() probe.Filter {
			return probe.Filter{Search: rapid.SampledFrom([]string{"", "a"}).Draw(t, "search"), Count: rapid.IntRange(0, 2).Draw(t, "count")}
		}
		drop := func(gone func(*held) bool) (any bool) {
			var rest []*held
			for _, o := range model {
				if gone(o) {
					any = true
				} else {
					rest = append(rest, o)
				}
			}
			model = rest
			return any
		}
		parked := func(s probe.Step) (n int) {
			for _, o := range model {
				if o.step == s {
					n += len(o.parked)
				}
			}
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"hold": func(t *rapid.T) {
				s, f := step(), filter()
				there := false
				for _, o := range model {
					there = there || (o.step == s && o.filter == f)
				}
				require.Equal(t, there, h.Hold(s, f) != nil)
				if !there {
					model = append(model, &held{step: s, filter: f})
				}
			},
			"arrive": func(t *rapid.T) {
				e := probe.Event{Step: step(), Search: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "who")}
				for _, o := range model {
					if o.step != e.Step || (o.filter.Search != "" && o.filter.Search != e.Search) || (o.filter.Count > 0 && len(o.parked) >= o.filter.Count) {
						continue
					}
					o.parked = append(o.parked, e)
					group.Go(func() { h.Reach(e) })
					require.True(t, h.Await(nil, e.Step, parked(e.Step)))
					return
				}
				h.Reach(e) // must pass
			},
			"release": func(t *rapid.T) {
				s := step()
				require.Equal(t, drop(func(o *held) bool { return o.step == s }), h.Release(s))
			},
			"release one": func(t *rapid.T) {
				s, f := step(), filter()
				require.Equal(t, drop(func(o *held) bool { return o.step == s && o.filter == f }), h.ReleaseOne(s, f))
			},
			"": func(t *rapid.T) {
				for _, s := range steps {
					require.Len(t, h.Parked(s), parked(s))
				}
			},
		})
	})
}
