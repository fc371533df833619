package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/columns"
	"github.com/wlmsim/wlmsim/sim/world"
)

// Difference is one thing that came out differently under the profiles that a
// file ran under.
type Difference struct {
	File  string            `json:"file"`
	What  string            `json:"what"`  // such as verdict, throttled, GROUP.total_throttled, or a check's name
	Under map[string]string `json:"under"` // what it was, by profile
}

// comparison is a file under several profiles: a column each, over all seeds.
type comparison struct {
	file     string
	profiles []string
	runs     [][]*world.Result // a column each
	rows     []row
	same     int // checks that held under every profile, which no row shows
}

// row is one thing that is compared.
type row struct {
	what  string
	cells []string // a profile each
}

// absent is the cell of a profile that was not asked.
const absent = "-"

func (r row) differs() bool {
	return slices.ContainsFunc(r.cells, func(c string) bool { return c != r.cells[0] })
}

// part is what results say of one file: the runs, or all of them compared.
type part struct {
	runs     []*world.Result
	compared *comparison // nil: under one profile alone
}

// parts cuts results by file, in the order in which files and profiles come.
func parts(results []world.Result) []part {
	var parts []part
	at := map[string]int{}
	for i := range results {
		r := &results[i]
		n, known := at[r.File]
		if !known {
			n = len(parts)
			at[r.File] = n
			parts = append(parts, part{})
		}
		parts[n].runs = append(parts[n].runs, r)
	}
	for i := range parts {
		parts[i].compared = compare(parts[i].runs)
	}
	return parts
}

// compare compares the runs of a file; nil if there is one profile alone.
func compare(runs []*world.Result) *comparison {
	c := &comparison{file: runs[0].File}
	for _, r := range runs {
		i := slices.Index(c.profiles, r.Profile)
		if i < 0 {
			i = len(c.profiles)
			c.profiles = append(c.profiles, r.Profile)
			c.runs = append(c.runs, nil)
		}
		c.runs[i] = append(c.runs[i], r)
	}
	if len(c.profiles) < 2 {
		return nil
	}
	c.row("verdict", verdicts)
	c.searches()
	c.latencies()
	c.groups()
	c.checks()
	return c
}

func (c *comparison) row(what string, cell func(runs []*world.Result) string) row {
	r := row{what: what}
	for _, runs := range c.runs {
		r.cells = append(r.cells, cell(runs))
	}
	c.rows = append(c.rows, r)
	return r
}

// counted adds a row of sums, unless it is 0 under every profile.
func (c *comparison) counted(what string, of func(r *world.Result) uint64) {
	var all uint64
	r := c.row(what, func(runs []*world.Result) string {
		var sum uint64
		for _, run := range runs {
			sum += of(run)
		}
		all |= sum
		return fmt.Sprint(sum)
	})
	if all == 0 {
		c.rows = slices.DeleteFunc(c.rows, func(one row) bool { return one.what == r.what })
	}
}

func (c *comparison) searches() {
	for _, n := range []struct {
		what string
		of   func(s *world.Searches) int
	}{
		{"searches", func(s *world.Searches) int { return s.Sent }},
		{"completed", func(s *world.Searches) int { return s.Completed }},
		{"throttled", func(s *world.Searches) int { return s.Throttled }},
		{"failed", func(s *world.Searches) int { return s.Failed }},
		{"cancelled", func(s *world.Searches) int { return s.Cancelled }},
	} {
		c.counted(n.what, func(r *world.Result) uint64 { return uint64(n.of(&r.Searches)) })
	}
}

// latencies are compared of single runs: percentiles do not add up.
func (c *comparison) latencies() {
	if slices.ContainsFunc(c.runs, func(runs []*world.Result) bool { return len(runs) != 1 || runs[0].Searches.Sent == 0 }) {
		return
	}
	c.row("latency p50", func(runs []*world.Result) string { return short(runs[0].LatencyMS.P50) + " ms" })
	c.row("latency p99", func(runs []*world.Result) string { return short(runs[0].LatencyMS.P99) + " ms" })
}

func (c *comparison) groups() {
	names := map[string]bool{}
	for _, runs := range c.runs {
		for _, r := range runs {
			for name := range r.Groups {
				names[name] = true
			}
		}
	}
	for _, name := range sortedKeys(names) {
		for _, n := range []struct {
			what string
			of   func(g world.Counters) uint64
		}{
			{"total_completions", func(g world.Counters) uint64 { return g.Completions }},
			{"total_rejections", func(g world.Counters) uint64 { return g.Rejections }},
			{"total_cancellations", func(g world.Counters) uint64 { return g.Cancellations }},
			{"total_throttled", func(g world.Counters) uint64 { return g.Throttled }},
			{"total_would_throttle", func(g world.Counters) uint64 { return g.WouldThrottle }},
		} {
			c.counted(name+"."+n.what, func(r *world.Result) uint64 { return n.of(r.Groups[name]) })
		}
	}
}

// checks adds a row for each check that did not hold under every profile.
func (c *comparison) checks() {
	order, words := c.checkWords()
	for _, key := range order {
		r := row{what: key.name}
		for i, runs := range c.runs {
			r.cells = append(r.cells, shares(words[key][i], len(runs)))
		}
		if r.cells[0] == string(check.Held) && !r.differs() {
			c.same++
			continue
		}
		c.rows = append(c.rows, r)
	}
}

// checkKey names a check of a run: two of one name are told apart.
type checkKey struct {
	name string
	nth  int
}

// checkWords counts, for each check and column, how often which word is its
// verdict; the order is that in which the checks come.
func (c *comparison) checkWords() (order []checkKey, words map[checkKey][]map[string]int) {
	words = map[checkKey][]map[string]int{}
	for i, runs := range c.runs {
		for _, r := range runs {
			count := map[string]int{}
			for n := range r.Checks {
				key := checkKey{r.Checks[n].Name, count[r.Checks[n].Name]}
				count[key.name]++
				if words[key] == nil {
					order = append(order, key)
					words[key] = make([]map[string]int, len(c.runs))
				}
				if words[key][i] == nil {
					words[key][i] = map[string]int{}
				}
				words[key][i][checkWord(&r.Checks[n])]++
			}
		}
	}
	return order, words
}

// checkWord is the verdict of a check; one that broke as the file says is told
// from one that broke the run.
func checkWord(c *check.Result) string {
	switch {
	case strings.HasPrefix(c.Message, check.AsTold):
		return "broken as told"
	case strings.HasPrefix(c.Message, check.ButHeld):
		return "held, told to break"
	}
	return string(c.Verdict)
}

func verdicts(runs []*world.Result) string {
	words := map[string]int{}
	for _, r := range runs {
		words[string(r.Verdict)]++
	}
	return shares(words, len(runs))
}

// shares writes what came out how often: one word alone if it always did.
func shares(words map[string]int, all int) string {
	if len(words) == 0 {
		return absent
	}
	var texts []string
	for _, word := range sortedKeys(words) {
		if words[word] == all {
			return word
		}
		texts = append(texts, fmt.Sprintf("%d %s", words[word], word))
	}
	return strings.Join(texts, ", ")
}

// differing are the rows that differ, by name.
func (c *comparison) differing() []string {
	var names []string
	for _, r := range c.rows {
		if r.differs() {
			names = append(names, r.what)
		}
	}
	return names
}

// title says what is compared.
func (c *comparison) title() string {
	seeds := map[uint64]bool{}
	for _, runs := range c.runs {
		for _, r := range runs {
			seeds[r.Seed] = true
		}
	}
	if len(seeds) == 1 {
		return fmt.Sprintf("%s  seed %d", clean(c.file), c.runs[0][0].Seed)
	}
	return fmt.Sprintf("%s  %d seeds", clean(c.file), len(seeds))
}

// conclusion names what differs, in words.
func (c *comparison) conclusion() string {
	text := "nothing differs"
	if names := c.differing(); len(names) > 0 {
		text = "differs: " + strings.Join(names, "; ")
	}
	if c.same > 0 {
		text += fmt.Sprintf(" (%s held under all)", many(c.same, "check"))
	}
	return text
}

// text writes the columns; a row that differs has a mark.
func (c *comparison) text(w io.Writer) {
	cells := [][]string{append([]string{""}, c.profiles...)}
	for _, r := range c.rows {
		line := []string{clean(r.what)}
		for _, cell := range r.cells {
			line = append(line, clean(cell))
		}
		cells = append(cells, line)
	}
	fmt.Fprintln(w, c.title())
	for i, line := range columns.Lines(cells, 0) {
		if i > 0 && c.rows[i-1].differs() {
			line = "≠" + line[1:]
		}
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "  %s\n", columns.Indent(clean(c.conclusion()), "  ", lineWidth))
}

// lineWidth is how wide a line may get, where it can be broken.
const lineWidth = 120

// markdown writes the columns as a table.
func (c *comparison) markdown(w io.Writer) {
	fmt.Fprintf(w, "\n## %s\n\n| |", cell(c.title()))
	for _, p := range c.profiles {
		fmt.Fprintf(w, " %s |", cell(p))
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(c.profiles)))
	for _, r := range c.rows {
		what := cell(r.what)
		if r.differs() {
			what = "**" + what + "**"
		}
		fmt.Fprintf(w, "| %s |", what)
		for _, text := range r.cells {
			fmt.Fprintf(w, " %s |", cell(text))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\n%s\n", cell(c.conclusion()))
}

// Differences lists what differs between the profiles that the files of
// results ran under; nothing for a file that ran under one.
func Differences(results []world.Result) []Difference {
	var all []Difference
	for _, p := range parts(results) {
		if p.compared == nil {
			continue
		}
		for _, r := range p.compared.rows {
			if !r.differs() {
				continue
			}
			d := Difference{File: p.compared.file, What: r.what, Under: map[string]string{}}
			for i, profile := range p.compared.profiles {
				d.Under[profile] = r.cells[i]
			}
			all = append(all, d)
		}
	}
	return all
}
