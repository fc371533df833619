package bubble_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/bubble"
)

// failure returns the error of a run that must fail.
func failure(t *testing.T, f func()) *bubble.Error {
	t.Helper()
	err := bubble.Run(f)
	var e *bubble.Error
	require.ErrorAs(t, err, &e)
	return e
}

func TestHoursPassInVirtualTimeAndEverythingEnds(t *testing.T) {
	var start, end time.Time
	ticks := 0
	err := bubble.Run(func() {
		start = time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 100 {
				time.Sleep(time.Hour)
				ticks++
			}
		}()
		<-done
		end = time.Now()
	})
	require.NoError(t, err)
	require.Equal(t, bubble.Epoch, start.UTC())
	require.Equal(t, 100*time.Hour, end.Sub(start))
	require.Equal(t, 100, ticks)
}

func TestWaitSettlesTheBubbleWithoutMovingItsClock(t *testing.T) {
	require.NoError(t, bubble.Run(func() {
		start := time.Now()
		steps, next := make(chan int), 0
		go func() {
			for n := range steps {
				next = n
			}
		}()
		steps <- 7
		bubble.Wait()
		if next != 7 || !time.Now().Equal(start) {
			panic("the other goroutine had not settled")
		}
		close(steps)
	}))
}

// stuck blocks for ever; its name must stand in the error.
func stuck(on chan int) { <-on }

func TestALeakNamesTheGoroutineAndWhereItIsBlocked(t *testing.T) {
	e := failure(t, func() {
		go stuck(make(chan int))
		go func() { time.Sleep(time.Hour) }()
	})
	require.Equal(t, bubble.Leaked, e.Kind)
	require.Len(t, e.Goroutines, 2)
	named := e.Goroutines[0]
	if !strings.HasSuffix(named.Entry, ".stuck") {
		named = e.Goroutines[1]
	}
	require.Equal(t, "github.com/wlmsim/wlmsim/sim/bubble_test.stuck", named.Entry)
	require.Equal(t, named.Entry, named.At)
	require.Equal(t, "chan receive", named.State)
	require.Regexp(t, `^bubble_test\.go:\d+$`, named.Line)
	require.Contains(t, e.Error(), "2 goroutines are left blocked")
	require.Contains(t, e.Error(), "bubble_test.stuck, blocked in ")
}

func TestASleeperIsNamedByItsOwnFunctionNotByTheLibrarys(t *testing.T) {
	e := failure(t, func() { go func() { time.Sleep(time.Hour) }() })
	require.Len(t, e.Goroutines, 1)
	require.Equal(t, "sleep", e.Goroutines[0].State)
	require.Contains(t, e.Goroutines[0].At, "TestASleeper")
}

func TestADeadlockNamesEveryGoroutine(t *testing.T) {
	e := failure(t, func() {
		var group sync.WaitGroup
		group.Go(func() { stuck(make(chan int)) })
		group.Wait()
	})
	require.Equal(t, bubble.Deadlocked, e.Kind)
	require.Len(t, e.Goroutines, 2, "the function itself and what it waits for, nothing of the machinery: %v", e)
	require.Contains(t, e.Goroutines[0].At, "TestADeadlockNamesEveryGoroutine.func1")
	require.Contains(t, e.Goroutines[1].At, ".stuck")
	require.Contains(t, e.Error(), "all 2 goroutines are blocked")
}

func TestAPanicIsAnErrorThatUnwraps(t *testing.T) {
	e := failure(t, func() { panic(io.ErrUnexpectedEOF) })
	require.Equal(t, bubble.Panicked, e.Kind)
	require.ErrorIs(t, e, io.ErrUnexpectedEOF)
	require.Contains(t, e.Stack, "TestAPanicIsAnErrorThatUnwraps")
	require.Empty(t, e.Goroutines)

	e = failure(t, func() { panic("seven") })
	require.Equal(t, "seven", e.Value)
	require.NoError(t, errors.Unwrap(e))

	var none error
	e = failure(t, func() { panic(none) })
	require.Equal(t, bubble.Panicked, e.Kind, "a panic with nil")
}

func TestAPanicThatLeavesGoroutinesIsStillAPanic(t *testing.T) {
	e := failure(t, func() {
		go stuck(make(chan int))
		panic("seven")
	})
	require.Equal(t, bubble.Panicked, e.Kind)
	require.Len(t, e.Goroutines, 1)
	require.Contains(t, e.Error(), "seven; 1 goroutines are left blocked\n\tgoroutine ")
}

func TestGoexitIsAnError(t *testing.T) {
	require.Equal(t, bubble.Exited, failure(t, runtime.Goexit).Kind)
	e := failure(t, func() {
		var inner testing.T
		inner.FailNow()
	})
	require.Equal(t, bubble.Exited, e.Kind)
}

func TestABubbleInsideABubbleIsRefused(t *testing.T) {
	called := false
	require.NoError(t, bubble.Run(func() {
		var e *bubble.Error
		if !errors.As(bubble.Run(func() { called = true }), &e) || e.Kind != bubble.Nested {
			panic(e)
		}
	}))
	require.False(t, called)
}

func TestBubblesSideBySideNameOnlyTheirOwn(t *testing.T) {
	const runs = 8
	errs := make([]error, runs)
	var group sync.WaitGroup
	for i := range runs {
		group.Go(func() {
			errs[i] = bubble.Run(func() {
				for range i {
					go stuck(make(chan int))
				}
				time.Sleep(time.Hour)
			})
		})
	}
	group.Wait()
	require.NoError(t, errs[0])
	for i := 1; i < runs; i++ {
		var e *bubble.Error
		require.ErrorAs(t, errs[i], &e)
		require.Len(t, e.Goroutines, i)
	}
}

func TestManyLeaksAreNamedInBoundedText(t *testing.T) {
	e := failure(t, func() {
		for range 30 {
			go stuck(make(chan int))
		}
	})
	require.Len(t, e.Goroutines, 30)
	require.Equal(t, 1+20+1, len(strings.Split(e.Error(), "\n")))
	require.Contains(t, e.Error(), "and 10 more")
}

func TestABubbleHasTheNumberThatStacksName(t *testing.T) {
	require.Zero(t, bubble.ID())
	ids := map[uint64]bool{}
	for range 2 {
		require.NoError(t, bubble.Run(func() {
			stack := make([]byte, 1<<10)
			stack = stack[:runtime.Stack(stack, false)]
			id := bubble.ID()
			ids[id] = true
			if !strings.Contains(string(stack), fmt.Sprintf("synctest bubble %d]", id)) {
				panic(string(stack))
			}
		}))
	}
	require.Len(t, ids, 2)
	require.NotContains(t, ids, uint64(0))
}

func TestKindsHaveNames(t *testing.T) {
	require.Equal(t, "deadlocked leaked panicked exited nested refused kind 0",
		strings.Join([]string{bubble.Deadlocked.String(), bubble.Leaked.String(), bubble.Panicked.String(),
			bubble.Exited.String(), bubble.Nested.String(), bubble.Refused.String(), bubble.Kind(0).String()}, " "))
}

func BenchmarkEnter(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := bubble.Run(func() {}); err != nil {
			b.Fatal(err)
		}
	}
}
