package applier_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/applier"
	"github.com/wlmsim/wlmsim/cluster"
	"github.com/wlmsim/wlmsim/cluster/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// after returns the state after n more commands.
func after(t require.TestingT, s *cluster.State, n int) *cluster.State {
	for range n {
		next, err := cluster.Apply(s, &cluster.PutNode{Node: cluster.Node{Name: "d1", ID: fmt.Sprint("id", s.Version())}})
		require.NoError(t, err)
		s = next
	}
	return s
}

// log is what happened, a line an event, from any goroutine.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// take returns the lines so far and forgets them.
func (l *log) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.Join(l.lines, "\n")
	l.lines = nil
	return text
}

func (l *log) hook() probe.Hook {
	return probe.HookFunc(func(e probe.Event) {
		l.add("step %s v%d %s touches %d", e.Step, e.Version, e.Listener, e.Touches)
	})
}

func (l *log) subscriber(name string, a *applier.Applier) applier.Func {
	return func(prev, next *cluster.State) error {
		l.add("  %s hears %d to %d, state reads %d, applied %d", name, prev.Version(), next.Version(), a.State().Version(), a.Applied())
		return nil
	}
}

// Promise 1, as golden text: the order is the promise.
func TestAVersionTakesItsStepsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		a := applier.New(applier.Config{Probe: probe.New("m1", l.hook()), Gate: func(_ context.Context, next *cluster.State, since time.Time) {
			l.add("  gate of %d, enqueued %v ago", next.Version(), time.Since(since))
		}})
		defer a.Close()
		a.Before("settings", l.subscriber("settings", a))
		a.Before("more", l.subscriber("more", a))
		a.Listen("wlm", l.subscriber("wlm", a))
		a.Listen("ack", l.subscriber("ack", a))
		s := cluster.Empty()
		a.Start(s)
		synctest.Wait()
		// The initial state passes no gate, and prev is the empty state.
		require.Equal(t, strings.TrimPrefix(`
step applier.received v0  touches 0
step applier.apply v0 settings touches 2
  settings hears 0 to 0, state reads 0, applied 0
step applier.apply v0 more touches 2
  more hears 0 to 0, state reads 0, applied 0
step applier.published v0  touches 0
step applier.notify v0 wlm touches 160
  wlm hears 0 to 0, state reads 0, applied 0
step applier.notify v0 ack touches 160
  ack hears 0 to 0, state reads 0, applied 0
step applier.notified v0  touches 0`, "\n"), l.take())

		require.NoError(t, a.Enqueue(after(t, s, 3))) // a jump, as after a restore
		synctest.Wait()
		// Subscribers read the old version, listeners the new one; the
		// applied version moves when the last of them has returned.
		require.Equal(t, strings.TrimPrefix(`
step applier.received v3  touches 0
  gate of 3, enqueued 0s ago
step applier.apply v3 settings touches 2
  settings hears 0 to 3, state reads 0, applied 0
step applier.apply v3 more touches 2
  more hears 0 to 3, state reads 0, applied 0
step applier.published v3  touches 0
step applier.notify v3 wlm touches 160
  wlm hears 0 to 3, state reads 3, applied 0
step applier.notify v3 ack touches 160
  ack hears 0 to 3, state reads 3, applied 0
step applier.notified v3  touches 0`, "\n"), l.take())
		require.EqualValues(t, 3, a.Applied())
	})
}

// The publication follows the received step where there is no subscriber: the
// step must own up to it, or an explorer would skip orders that differ.
func TestWithoutSubscribersTheReceivedStepTouchesTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		a := applier.New(applier.Config{Probe: probe.New("m1", l.hook())})
		defer a.Close()
		a.Start(after(t, cluster.Empty(), 1))
		synctest.Wait()
		require.Equal(t, strings.TrimPrefix(`
step applier.received v1  touches 2
step applier.published v1  touches 0
step applier.notified v1  touches 0`, "\n"), l.take())
	})
}

// Promise 3: the registration lag, held open.
func TestTheStateIsNewWhileAListenerHasNotRun(t *testing.T) {
	for _, hold := range []struct {
		step   probe.Step
		filter probe.Filter
		heard  string
	}{
		{probe.ApplierPublished, probe.Filter{}, ""},
		{probe.ApplierNotify, probe.Filter{Listener: "late"}, "early"},
	} {
		t.Run(string(hold.step), func(t *testing.T) {
			var holds probe.Holds
			defer holds.Close()
			var l log
			a := applier.New(applier.Config{Probe: probe.New("m1", &holds)})
			for _, name := range []string{"early", "late"} {
				a.Listen(name, func(_, next *cluster.State) error {
					if next.Version() > 0 {
						l.add("%s", name)
					}
					return nil
				})
			}
			s := cluster.Empty()
			a.Start(s)
			defer a.Close()
			one := after(t, s, 1)
			require.NoError(t, a.Wait(t.Context(), 0))
			require.NoError(t, a.Enqueue(one))
			require.NoError(t, a.Wait(t.Context(), 1)) // the initial state is through as well
			l.take()

			require.NoError(t, holds.Hold(hold.step, hold.filter))
			require.NoError(t, a.Enqueue(after(t, one, 1)))
			require.True(t, holds.Await(t.Context().Done(), hold.step, 1))
			require.EqualValues(t, 2, a.State().Version(), "readable")
			require.EqualValues(t, 1, a.Applied(), "and not applied")
			require.Equal(t, hold.heard, l.take())
			require.True(t, holds.Release(hold.step))
			require.NoError(t, a.Wait(t.Context(), 2))
			require.True(t, strings.HasSuffix(l.take(), "late"))
		})
	}
}

// Promise 4, with a planted error and a planted panic in each place.
func TestAFailureIsLoggedAndTheOthersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		var l log
		logger := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "stack" {
				return slog.Attr{}
			}
			return a
		}}))
		a := applier.New(applier.Config{Log: logger})
		defer a.Close()
		fails := func(name string) applier.Func {
			return func(_, next *cluster.State) error {
				l.add("%s", name)
				if next.Version() == 2 {
					panic("planted")
				}
				return errors.New("planted")
			}
		}
		a.Before("settings", fails("settings"))
		a.Before("more", l.subscriber("more", a))
		a.Listen("wlm", fails("wlm"))
		a.Listen("ack", l.subscriber("ack", a))
		s := after(t, cluster.Empty(), 1)
		a.Start(s)
		require.NoError(t, a.Enqueue(after(t, s, 1)))
		require.NoError(t, a.Wait(t.Context(), 2))
		require.Equal(t, strings.TrimPrefix(`
settings
  more hears 0 to 1, state reads 0, applied 0
wlm
  ack hears 0 to 1, state reads 1, applied 0
settings
  more hears 1 to 2, state reads 1, applied 1
wlm
  ack hears 1 to 2, state reads 2, applied 1`, "\n"), l.take())
		require.Equal(t, strings.TrimPrefix(`
level=ERROR msg="subscriber settings failed before version 1 was readable" error=planted
level=WARN msg="failed to notify listener wlm of version 1" error=planted
level=ERROR msg="subscriber settings failed before version 2 was readable" panic=planted
level=WARN msg="failed to notify listener wlm of version 2" panic=planted
`, "\n"), text.String())
	})
}

// Promises 3 and 5: a stuck listener fills the queue and stops nobody else.
func TestASlowListenerFillsTheQueueUpToItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := applier.New(applier.Config{Queue: 3})
		defer a.Close()
		var heard log
		a.Listen("slow", func(_, next *cluster.State) error {
			time.Sleep(time.Minute)
			heard.add("%d", next.Version())
			return nil
		})
		s := cluster.Empty()
		a.Start(s)
		synctest.Wait() // version 0 is with the listener
		for range 3 {
			s = after(t, s, 1)
			require.NoError(t, a.Enqueue(s))
		}
		err := a.Enqueue(after(t, s, 1))
		require.ErrorIs(t, err, applier.ErrQueueFull)
		require.EqualError(t, err, "enqueue version 4: the applier's queue is full: 3 versions wait and 3 may; version 0 is applied")
		require.NoError(t, a.Wait(t.Context(), 3))
		require.Equal(t, "0\n1\n2\n3", heard.take(), "the refused version was not queued")
		require.NoError(t, a.Enqueue(after(t, s, 1)), "and may come again")
		require.NoError(t, a.Wait(t.Context(), 4))
	})
}

// Promise 2: what a restored snapshot held already comes twice and is skipped.
func TestAVersionThatIsNotNewerIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := applier.New(applier.Config{})
		defer a.Close()
		var heard log
		a.Listen("all", func(prev, next *cluster.State) error {
			heard.add("%d to %d", prev.Version(), next.Version())
			return nil
		})
		one := after(t, cluster.Empty(), 1)
		two := after(t, one, 1)
		a.Start(one)
		for _, s := range []*cluster.State{one, two, one, two, after(t, two, 5), two} {
			require.NoError(t, a.Enqueue(s))
		}
		require.NoError(t, a.Wait(t.Context(), 7))
		require.Equal(t, "0 to 1\n1 to 2\n2 to 7", heard.take())
	})
}

func TestWaitEndsWithItsVersionItsContextOrTheApplier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := applier.New(applier.Config{})
		one := after(t, cluster.Empty(), 1)
		a.Start(one)
		require.NoError(t, a.Wait(t.Context(), 1))
		require.NoError(t, a.Wait(t.Context(), 0), "applied long ago")

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("publish timeout"))
		defer cancel()
		require.EqualError(t, a.Wait(ctx, 2), "wait for version 2, version 1 is applied: publish timeout")

		answers := make(chan error)
		for _, version := range []uint64{2, 3, 4, 9} {
			go func() { answers <- a.Wait(t.Context(), version) }()
		}
		synctest.Wait()
		require.NoError(t, a.Enqueue(after(t, one, 2))) // 3 passes over 2 and wakes both
		require.NoError(t, <-answers)
		require.NoError(t, <-answers)
		a.Close()
		require.ErrorIs(t, <-answers, applier.ErrClosed)
		require.ErrorIs(t, <-answers, applier.ErrClosed)
		require.ErrorIs(t, a.Wait(t.Context(), 9), applier.ErrClosed)
		require.ErrorIs(t, a.Enqueue(after(t, one, 5)), applier.ErrClosed)
		require.EqualValues(t, 3, a.State().Version(), "what was published stays readable")
	})
}

// Promise 6: at whatever step Close comes, the version under way ends and no
// further one begins.
func TestCloseInTheMiddleOfAVersion(t *testing.T) {
	for _, row := range []struct {
		step    probe.Step
		applied uint64 // of two versions that wait
	}{
		{probe.ApplierReceived, 0}, // nothing was done with it yet
		{probe.ApplierApply, 1},
		{probe.ApplierPublished, 1},
		{probe.ApplierNotify, 1},
		{probe.ApplierNotified, 1},
	} {
		t.Run(string(row.step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var holds probe.Holds
				a := applier.New(applier.Config{Probe: probe.New("m1", &holds)})
				nothing := func(_, _ *cluster.State) error { return nil }
				a.Before("settings", nothing)
				a.Listen("wlm", nothing)
				a.Start(cluster.Empty())
				synctest.Wait()
				require.NoError(t, holds.Hold(row.step, probe.Filter{}))
				one := after(t, cluster.Empty(), 1)
				require.NoError(t, a.Enqueue(one))
				require.NoError(t, a.Enqueue(after(t, one, 1)))
				synctest.Wait()
				closed := make(chan struct{})
				go func() { defer close(closed); a.Close() }()
				synctest.Wait()
				select {
				case <-closed:
					t.Fatal("Close returned while the goroutine was held")
				default:
				}
				holds.Close()
				<-closed
				require.Equal(t, row.applied, a.Applied())
				require.Equal(t, row.applied, a.State().Version())
			})
		})
	}
}

// The time at which a version came does not move while another one is applied.
func TestTheGateHearsWhenItsVersionWasEnqueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		a := applier.New(applier.Config{Gate: func(_ context.Context, next *cluster.State, since time.Time) {
			l.add("%d after %v", next.Version(), time.Since(since))
		}})
		defer a.Close()
		a.Listen("slow", func(_, _ *cluster.State) error {
			time.Sleep(time.Minute)
			return nil
		})
		a.Start(cluster.Empty())
		time.Sleep(20 * time.Second)
		one := after(t, cluster.Empty(), 1)
		require.NoError(t, a.Enqueue(one))
		require.NoError(t, a.Enqueue(after(t, one, 1)))
		require.NoError(t, a.Wait(t.Context(), 2))
		require.Equal(t, "1 after 40s\n2 after 1m40s", l.take())
	})
}

// A gate that Close breaks off leaves its version unpublished: nobody has
// acknowledged it here.
func TestCloseBreaksAGateOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := applier.New(applier.Config{Gate: func(ctx context.Context, _ *cluster.State, _ time.Time) { <-ctx.Done() }})
		a.Start(cluster.Empty())
		require.NoError(t, a.Enqueue(after(t, cluster.Empty(), 1)))
		synctest.Wait()
		a.Close()
		require.Zero(t, a.State().Version())
	})
}

func TestUseInTheWrongOrder(t *testing.T) {
	a := applier.New(applier.Config{})
	require.Zero(t, a.State().Version(), "readable from the start")
	require.ErrorIs(t, a.Enqueue(after(t, cluster.Empty(), 1)), applier.ErrNotStarted)
	a.Start(cluster.Empty())
	nothing := func(_, _ *cluster.State) error { return nil }
	require.PanicsWithValue(t, `applier: subscriber "settings" registered after the start`, func() { a.Before("settings", nothing) })
	require.PanicsWithValue(t, `applier: listener "wlm" registered after the start`, func() { a.Listen("wlm", nothing) })
	require.Panics(t, func() { a.Start(cluster.Empty()) })
	a.Close()
	a.Close()

	unused := applier.New(applier.Config{})
	unused.Close()
	unused.Start(after(t, cluster.Empty(), 1))
	unused.Close()
	require.Zero(t, unused.State().Version())
}

// A listener that ends its goroutine, as a test's FailNow does, must not leave
// anybody waiting.
func TestAGoroutineThatEndsWakesEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := applier.New(applier.Config{})
		a.Listen("exits", func(_, _ *cluster.State) error { runtime.Goexit(); return nil })
		a.Start(after(t, cluster.Empty(), 1))
		require.ErrorIs(t, a.Wait(t.Context(), 1), applier.ErrClosed)
		a.Close()
	})
}

// Promises 2 and 3 under the race detector: readers on many goroutines never
// see a version go back, and never one that is less than what was applied.
func TestReadersNeverSeeAVersionGoBack(t *testing.T) {
	a := applier.New(applier.Config{})
	a.Listen("busy", func(_, _ *cluster.State) error { return nil })
	a.Start(cluster.Empty())
	defer a.Close()
	const versions = 100
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for last := uint64(0); last < versions; runtime.Gosched() {
				applied, version := a.Applied(), a.State().Version()
				if version < last || version < applied {
					t.Errorf("read version %d after %d with %d applied", version, last, applied)
					return
				}
				last = version
			}
		})
		readers.Go(func() {
			for v := uint64(1); v <= versions; v++ {
				if err := a.Wait(t.Context(), v); err != nil || a.State().Version() < v {
					t.Errorf("wait for %d: %v, state %d", v, err, a.State().Version())
					return
				}
			}
		})
	}
	s := cluster.Empty()
	for range versions {
		s = after(t, s, 1)
		require.NoError(t, a.Enqueue(s))
	}
	readers.Wait()
}

// The applier against a list of versions: random jumps, repeats, bounds and
// stops of the listener.
func TestTheApplierAgreesWithANaiveModel(t *testing.T) {
	states := []*cluster.State{cluster.Empty()}
	for range 60 {
		states = append(states, after(t, states[len(states)-1], 1))
	}
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(*testing.T) { applierModel(rt, states) })
	})
}

func applierModel(t *rapid.T, states []*cluster.State) {
	bound := rapid.IntRange(1, 4).Draw(t, "bound")
	var holds probe.Holds
	a := applier.New(applier.Config{Queue: bound, Probe: probe.New("m1", &holds)})
	var heard []uint64
	a.Listen("all", func(prev, next *cluster.State) error {
		if len(heard) > 0 && heard[len(heard)-1] != prev.Version() {
			heard = append(heard, prev.Version()) // shows as a difference
		}
		heard = append(heard, next.Version())
		return nil
	})
	defer func() { holds.Close(); a.Close() }()
	a.Start(states[0])
	synctest.Wait()

	// The model: versions heard, the one that is held, those that wait.
	told, waiting, last, held := []uint64{0}, []uint64{}, uint64(0), false
	published := uint64(0)
	for range rapid.IntRange(1, 30).Draw(t, "actions") {
		switch rapid.IntRange(0, 4).Draw(t, "action") {
		case 0:
			if !held {
				require.NoError(t, holds.Hold(probe.ApplierPublished, probe.Filter{}))
				held = true
			}
		case 1:
			holds.Release(probe.ApplierPublished)
			if held = false; published != told[len(told)-1] {
				told = append(told, published)
			}
			told = append(told, waiting...)
			published, waiting = told[len(told)-1], nil
		default:
			version := rapid.Uint64Range(0, uint64(len(states)-1)).Draw(t, "version")
			version = min(version, last+3)
			err := a.Enqueue(states[version])
			switch {
			case version <= last:
				require.NoError(t, err)
			case len(waiting) == bound:
				require.ErrorIs(t, err, applier.ErrQueueFull)
			default:
				require.NoError(t, err)
				last = version
				switch {
				case !held:
					published, told = version, append(told, version)
				case published == told[len(told)-1]: // nobody is parked yet
					published = version
				default:
					waiting = append(waiting, version)
				}
			}
		}
		synctest.Wait()
		require.Equal(t, told, heard)
		require.Equal(t, published, a.State().Version())
		require.Equal(t, told[len(told)-1], a.Applied())
	}
}
