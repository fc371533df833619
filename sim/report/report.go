package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/world"
)

// Source returns a line of a scenario file, from 1 on, without its end; "" if
// it is not known.
type Source func(file string, line int) string

// Formats are the names of the formats that [Write] knows, the default first.
func Formats() []string { return []string{"text", "json", "junit", "markdown"} }

// CheckFormat says whether there is a format of a name.
func CheckFormat(name string) error {
	for _, known := range Formats() {
		if name == known {
			return nil
		}
	}
	return fmt.Errorf("format %q: want one of %s", name, strings.Join(Formats(), ", "))
}

// Write writes results in a format. Without a source no lines of files are
// shown. The error is that of the writer, or of [CheckFormat].
func Write(w io.Writer, format string, results []world.Result, source Source) error {
	if source == nil {
		source = func(string, int) string { return "" }
	}
	switch format {
	case "text":
		return writeText(w, results, source)
	case "json":
		return JSON(w, results)
	case "junit":
		return writeJUnit(w, results, source)
	case "markdown":
		return writeMarkdown(w, results, source)
	}
	return CheckFormat(format)
}

// Verdict is the worst of the results': one that broke counts more than one
// that is undecided. Nothing at all holds.
func Verdict(results []world.Result) check.Verdict {
	worst := check.Held
	for i := range results {
		if v := results[i].Verdict; v == check.Broken || worst == check.Held {
			worst = v
		}
	}
	return worst
}

// Summary counts runs in one line.
func Summary(results []world.Result) string {
	var held, broken, undecided int
	var virtual, wall float64
	files := map[string]bool{}
	for i := range results {
		r := &results[i]
		files[r.File] = true
		virtual += r.VirtualSeconds
		wall += r.WallSeconds
		switch r.Verdict {
		case check.Held:
			held++
		case check.Broken:
			broken++
		default:
			undecided++
		}
	}
	return fmt.Sprintf("%s of %s: %d held, %d broken, %d undecided; %s of virtual time in %s of work",
		many(len(results), "run"), many(len(files), "file"), held, broken, undecided, seconds(virtual), seconds(wall))
}

func many(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// seconds writes a time to three digits or so.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// telling are the checks of a run that a reader wants to see: of one that did
// not hold those that did not, of any run the notes of checks that held.
func telling(r *world.Result) []check.Result {
	var shown []check.Result
	for _, c := range r.Checks {
		if r.Verdict == check.Held && c.Verdict != check.Held {
			continue // the file says that it breaks
		}
		if c.Verdict != check.Held || c.Message != "" {
			shown = append(shown, c)
		}
	}
	return shown
}

// plain is the name of the plain lane's command, as it begins in Repeat; exact
// that of the exact lane's.
const (
	plain = "wlmsim "
	exact = "wlmsim-exact "
)

// repeats are the commands that repeat a run.
func repeats(r *world.Result) []string {
	commands := []string{r.Repeat}
	if rest, isPlain := strings.CutPrefix(r.Repeat, plain); isPlain {
		commands = append(commands, exact+rest)
	}
	return commands
}
