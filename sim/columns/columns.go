package columns

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// Gap is the number of blanks between two columns.
const Gap = 2

// leastLast is how narrow the last column may get before it goes below the
// others.
const leastLast = 40

var condition = func() *runewidth.Condition {
	c := runewidth.NewCondition()
	c.EastAsianWidth = false
	return c
}()

// Width returns how many places a text takes in a terminal.
func Width(text string) int { return condition.StringWidth(text) }

// Pad puts blanks behind a text until it takes so many places.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-Width(text)))
}

// Widths returns the width of each column of rows.
func Widths(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	return widths
}

// Lines returns rows as lines with aligned columns, each of which begins with a
// gap. The cells of the last column are wrapped below one another where a line
// would be wider than most; 0: nothing is wrapped.
func Lines(rows [][]string, most int) []string {
	widths := Widths(rows)
	last := len(widths) - 1
	room := 0
	if most > 0 {
		room = most
		for _, w := range widths[:max(last, 0)] {
			room -= w + Gap
		}
		room = max(room-Gap, leastLast)
	}
	var lines []string
	for _, row := range rows {
		line, under := "", 0
		var more []string
		for i, cell := range row {
			line += strings.Repeat(" ", Gap)
			if i == last && room > 0 {
				under = Width(line)
				parts := Wrap(cell, room)
				cell, more = parts[0], parts[1:]
			}
			line += Pad(cell, widths[i])
		}
		lines = append(lines, strings.TrimRight(line, " "))
		for _, part := range more {
			lines = append(lines, strings.Repeat(" ", under)+part)
		}
	}
	return lines
}

// Wrap breaks a text at blanks into lines that take up to most places. There is
// at least one.
func Wrap(text string, most int) []string {
	if Width(text) <= most {
		return []string{text}
	}
	var lines []string
	line := ""
	for i, word := range strings.Split(text, " ") {
		switch {
		case i == 0:
			line = word
		case Width(line)+1+Width(word) > most:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// Indent wraps each line of a text, so that with what comes before it takes up
// to most places, and puts by before every line but the first.
func Indent(text, by string, most int) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		lines = append(lines, Wrap(strings.TrimRight(line, " \r"), most-Width(by))...)
	}
	return strings.Join(lines, "\n"+by)
}
