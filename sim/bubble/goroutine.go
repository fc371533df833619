package bubble

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Goroutine is one goroutine of a bubble, reduced to names.
type Goroutine struct {
	ID int
	// State is the runtime's word for what it waits for, such as "select" or
	// "chan receive".
	State string
	// Entry is the function that the goroutine was started with, At the
	// innermost one that it is blocked in, and Line its file and line. The
	// standard library's own ways to start and to wait are passed over.
	Entry    string
	At, Line string
}

// String returns the goroutine in one line.
func (g Goroutine) String() string {
	return fmt.Sprintf("goroutine %d: %s, blocked in %s (%s): %s", g.ID, g.Entry, g.At, g.Line, g.State)
}

// bubbleID returns the number of the bubble in the first line of a stack, or ""
// if that goroutine is in none.
func bubbleID(stack string) string {
	header, _, _ := strings.Cut(stack, "\n")
	_, rest, found := strings.Cut(header, "synctest bubble ")
	if !found {
		return ""
	}
	return strings.TrimRight(rest, "]:")
}

// inBubble returns the goroutines of a dump that are in the bubble, or in any
// bubble if id is "", in order of their start. Those of the machinery that
// enters the bubble are left out.
func inBubble(dump, id string) []Goroutine {
	var found []Goroutine
	for _, stack := range strings.Split(dump, "\n\n") {
		if own := bubbleID(stack); own == "" || id != "" && own != id {
			continue
		}
		if g, ok := parse(stack); ok {
			found = append(found, g)
		}
	}
	slices.SortFunc(found, func(a, b Goroutine) int { return cmp.Compare(a.ID, b.ID) })
	return found
}

// parse reduces the stack of one goroutine. It is false for text that is no
// stack, and for the goroutines that only wait for the function of Run.
func parse(stack string) (Goroutine, bool) {
	lines := strings.Split(strings.TrimSpace(stack), "\n")
	g, ok := parseHeader(lines[0])
	if !ok {
		return Goroutine{}, false
	}
	frames := parseFrames(lines[1:])
	if len(frames) == 0 || frames[0].machinery() {
		return Goroutine{}, false
	}
	// The function of Run stands on two frames of this package.
	own := slices.IndexFunc(frames, frame.machinery)
	if own > 0 {
		frames = frames[:own]
	}
	if told := slices.DeleteFunc(slices.Clone(frames), frame.waiting); len(told) > 0 {
		frames = told
	}
	at, entry := frames[0], frames[len(frames)-1]
	g.Entry, g.At, g.Line = entry.function, at.function, at.line
	return g, true
}

// parseHeader reads "goroutine 12 [chan receive (durable), synctest bubble 3]:".
func parseHeader(line string) (Goroutine, bool) {
	number, rest, ok := strings.Cut(strings.TrimPrefix(line, "goroutine "), " [")
	id, err := strconv.Atoi(number)
	if !ok || err != nil {
		return Goroutine{}, false
	}
	state, _, _ := strings.Cut(rest, ",")
	return Goroutine{ID: id, State: strings.TrimSuffix(state, " (durable)")}, true
}

// frame is one call on a stack.
type frame struct{ function, line string }

// machinery tells whether the frame belongs to this package's own way into the
// bubble, or to that of package testing.
func (f frame) machinery() bool {
	const own = "github.com/wlmsim/wlmsim/sim/bubble."
	return strings.HasPrefix(f.function, own+"(*bubbled).") ||
		strings.HasPrefix(f.function, "testing.tRunner") ||
		strings.HasPrefix(f.function, "testing/synctest.testingSynctestTest")
}

// waiting tells whether the frame is the standard library's own waiting, which
// says less than its caller does.
func (f frame) waiting() bool {
	for _, prefix := range []string{"runtime.", "sync.", "time.", "internal/", "testing/synctest."} {
		if strings.HasPrefix(f.function, prefix) {
			return true
		}
	}
	return false
}

// parseFrames reads pairs of lines: a call, then a tab, its file and line.
func parseFrames(lines []string) []frame {
	var frames []frame
	for i := 0; i+1 < len(lines); i += 2 {
		if strings.HasPrefix(lines[i], "created by ") {
			break
		}
		function := lines[i]
		if open := strings.LastIndexByte(function, '('); open > 0 {
			function = function[:open]
		}
		place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		frames = append(frames, frame{function: function, line: path.Base(place)})
	}
	return frames
}
