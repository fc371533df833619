package bubble

import (
	"fmt"
	"strings"
)

// Kind says what went wrong in a bubble.
type Kind int

// The kinds. When several things went wrong, the first cause gives the kind:
// a panic that leaves goroutines behind is Panicked.
const (
	// Deadlocked: the function never returned, and every goroutine of the
	// bubble is blocked with no timer left to wake one.
	Deadlocked Kind = iota + 1
	// Leaked: the function returned and goroutines of the bubble did not end.
	Leaked
	// Panicked: the function panicked.
	Panicked
	// Exited: the function called runtime.Goexit, as FailNow of a test does.
	Exited
	// Nested: Run was called from within a bubble.
	Nested
	// Refused: the runtime refused the bubble for another reason, in Value.
	Refused
)

// String returns the kind in lower case.
func (k Kind) String() string {
	names := [...]string{"", "deadlocked", "leaked", "panicked", "exited", "nested", "refused"}
	if k <= 0 || int(k) >= len(names) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return names[k]
}

// Error tells how a bubble failed.
type Error struct {
	Kind Kind
	// Value is what the function panicked with; nil unless Kind is Panicked
	// or Refused.
	Value any
	// Stack is where it panicked; empty unless Kind is Panicked.
	Stack string
	// Goroutines are those left blocked, in order of their start.
	Goroutines []Goroutine
}

// maxNamed bounds the goroutines that Error writes out; all are in Goroutines.
const maxNamed = 20

// Error names what went wrong, and the first goroutines that are left, one a
// line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("bubble: " + e.headline())
	for i, g := range e.Goroutines {
		if i == maxNamed {
			fmt.Fprintf(&b, "\n\tand %d more", len(e.Goroutines)-maxNamed)
			break
		}
		b.WriteString("\n\t" + g.String())
	}
	return b.String()
}

func (e *Error) headline() string {
	switch e.Kind {
	case Deadlocked:
		return fmt.Sprintf("all %d goroutines are blocked", len(e.Goroutines))
	case Leaked:
		return fmt.Sprintf("the function returned, %d goroutines are left blocked", len(e.Goroutines))
	case Panicked:
		return fmt.Sprintf("the function panicked: %v%s", e.Value, e.leftover())
	case Exited:
		return "the function ended its goroutine (runtime.Goexit)" + e.leftover()
	case Nested:
		return "run was called from within a bubble"
	default:
		return fmt.Sprintf("refused: %v", e.Value)
	}
}

func (e *Error) leftover() string {
	if len(e.Goroutines) == 0 {
		return ""
	}
	return fmt.Sprintf("; %d goroutines are left blocked", len(e.Goroutines))
}

// Unwrap returns the value of the panic if that was an error.
func (e *Error) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// refusal decides what the runtime's panic means for a function that has not
// returned. The runtime's errors have no exported types, their text is what is
// there to look at.
func refusal(value any) Kind {
	text := fmt.Sprint(value)
	switch {
	case strings.Contains(text, "within a synctest bubble"):
		return Nested
	case strings.HasPrefix(text, "deadlock"):
		return Deadlocked
	default:
		return Refused
	}
}
