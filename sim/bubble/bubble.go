package bubble

import (
	"reflect"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// Epoch is the instant at which the clock of every bubble starts.
var Epoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// Run calls f in a new bubble and waits until every goroutine that f started,
// directly or not, has ended. It returns nil if f returned and nothing was left
// behind, and an *Error otherwise. A call from within a bubble is an *Error of
// kind Nested, and f is not called.
//
// Once f has returned the clock stands still: a goroutine that still sleeps is
// left behind.
func Run(f func()) error {
	var (
		b       = bubbled{f: f}
		refused = enter(b.main)
	)
	return verdict(b.ended, refused, func() []Goroutine { return inBubble(allStacks(), idOf(refused)) })
}

// Wait blocks until every other goroutine of the caller's bubble is blocked
// for good as long as the clock stands still. It panics outside a bubble, and
// when two goroutines of one bubble call it at once.
func Wait() { synctest.Wait() }

// ID returns the number by which stacks name the caller's bubble, as in
// "synctest bubble 3"; 0 outside of a bubble. It takes some microseconds.
func ID() uint64 {
	var buf [128]byte // the first line of a stack
	id, err := strconv.ParseUint(bubbleID(string(buf[:runtime.Stack(buf[:], false)])), 10, 64)
	if err != nil { // there is no number
		return 0
	}
	return id
}

// bubbled is one call of f, with how it ended.
type bubbled struct {
	f     func()
	ended ending
}

// ending tells how f ended; the zero value is a function that never did.
type ending struct {
	returned bool
	panicked bool
	exited   bool
	value    any    // of the panic
	stack    string // of the panic
}

// main is the first goroutine of the bubble. It runs f on a second one, because
// a runtime.Goexit of f would otherwise reach the zero testing.T, which has no
// means to report it.
func (b *bubbled) main() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.call()
	}()
	<-done
}

// call runs f and notes how it ended.
func (b *bubbled) call() {
	defer func() {
		switch value := recover(); {
		case b.ended.returned:
		case value != nil:
			b.ended.panicked, b.ended.value, b.ended.stack = true, value, string(debug.Stack())
		default:
			// No panic, and f did not return: runtime.Goexit. A panic with nil
			// cannot be met, it becomes a *runtime.PanicNilError.
			b.ended.exited = true
		}
	}()
	b.f()
	b.ended.returned = true
}

// enter runs main in a bubble and returns what the bubble panicked with.
func enter(main func()) (refused any) {
	defer func() { refused = recover() }()
	var t testing.T // the zero value is enough as long as main neither panics nor exits
	synctest.Test(&t, func(*testing.T) { main() })
	return nil
}

// verdict decides what Run returns. The goroutines are looked up only when
// something is wrong.
func verdict(ended ending, refused any, left func() []Goroutine) error {
	if ended.returned && refused == nil {
		return nil
	}
	failure := &Error{Kind: kindOf(ended, refused), Value: ended.value, Stack: ended.stack}
	switch {
	case failure.Kind == Nested:
	case failure.Kind == Refused:
		failure.Value = refused
	case refused != nil:
		failure.Goroutines = left()
	}
	return failure
}

// kindOf decides which of several things that went wrong came first.
func kindOf(ended ending, refused any) Kind {
	switch {
	case ended.panicked:
		return Panicked
	case ended.exited:
		return Exited
	case ended.returned:
		return Leaked
	}
	return refusal(refused)
}

// idOf returns the number by which stacks name the bubble that the runtime
// refused, or "" for any bubble. The runtime's error has it in fields that are
// not exported but may be read. To ask a stack of the bubble itself instead
// would cost every successful Run as much as entering the bubble does.
func idOf(refused any) string {
	v := reflect.ValueOf(refused)
	for _, field := range []string{"bubble", "id"} {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct {
			return ""
		}
		v = v.FieldByName(field)
	}
	if !v.CanUint() {
		return ""
	}
	return strconv.FormatUint(v.Uint(), 10)
}

// maxStacks bounds the dump of all goroutines: 64 MiB hold some 50,000.
const maxStacks = 64 << 20

// allStacks returns the stacks of all goroutines of the process.
func allStacks() string {
	for size := 1 << 16; ; size *= 4 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size || size >= maxStacks {
			return string(buf[:n])
		}
	}
}
