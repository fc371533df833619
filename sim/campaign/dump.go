package campaign

import (
	"fmt"
	"regexp"
	"strings"
)

// Bounds on what a result shows of a worker's last words; the folder of the
// run has them whole.
const (
	shownGoroutines = 8
	shownLines      = 40
)

// culprits reduces a dump of all goroutines to those that keep virtual time
// from moving on: the ones of the bubble that are not blocked for good within
// it. Who waits for a lock is one of them; its holder may be among the others.
func culprits(dump string) string {
	var shown []string
	others := 0
	for _, block := range strings.Split(strings.ReplaceAll(dump, "\r", ""), "\n\n") {
		head, frames, _ := strings.Cut(strings.TrimSpace(block), "\n")
		state := goroutineLine.FindStringSubmatch(head)
		switch {
		case state == nil:
		case !strings.Contains(state[2], "bubble") || strings.Contains(state[2], "(durable)") || len(shown) == shownGoroutines:
			others++
		default:
			shown = append(shown, "goroutine "+state[1]+" ["+state[2]+"]"+calls(frames))
		}
	}
	return strings.Join(append(shown, fmt.Sprintf("and %d other goroutines", others)), "\n")
}

var (
	// goroutineLine is the first line of a goroutine: its number and its state.
	goroutineLine = regexp.MustCompile(`^goroutine (\d+) (?:gp=.*)?\[(.*)\]:$`)
	// place is the second line of a frame: a file and a line.
	place = regexp.MustCompile(`^\t(.+:\d+)`)
)

// calls lists the frames of a goroutine, from the innermost on, without those
// of the runtime.
func calls(frames string) string {
	var b strings.Builder
	function := ""
	for line := range strings.Lines(frames) {
		line = strings.TrimRight(line, "\n")
		if at := place.FindStringSubmatch(line); at == nil {
			function = line
		} else if !strings.HasPrefix(function, "runtime.") && !strings.HasPrefix(function, "created by") {
			name := function
			if i := argumentsOf(name); i > 0 {
				name = name[:i]
			}
			b.WriteString("\n  " + name + " at " + at[1])
		}
	}
	return b.String()
}

// beginning is the first part of a text.
func beginning(text string) string {
	lines := strings.SplitN(strings.TrimSpace(text), "\n", shownLines+1)
	if len(lines) > shownLines {
		lines[shownLines] = "..."
	}
	return strings.Join(lines, "\n")
}

// argumentsOf returns where the arguments of a call begin, or -1. They are the
// last pair of brackets, which may hold others.
func argumentsOf(call string) int {
	depth := 0
	for i := len(call) - 1; i >= 0; i-- {
		switch call[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
