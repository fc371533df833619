package explore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/columns"
	"github.com/wlmsim/wlmsim/sim/history"
)

// Story is one schedule, step by step: the events in the order in which they
// happened, one lane an actor, and messages between nodes in one. The
// registration lag, from a version's publication on a node until its last
// listener has heard of it, is marked at the left. Of a group that was made anew
// the second one is NAME#2.
type Story struct {
	Title string
	Lines []string
}

// Stories are those of the schedules that show what is forbidden or broken, and
// of the one that was asked for.
func (r *Result) Stories() []Story {
	var all []Story
	shown := map[string]bool{}
	for i := range r.Outcomes {
		if o := &r.Outcomes[i]; o.trace != nil && (o.Forbidden || r.Strategy == Replay) {
			all = append(all, Story{o.values(), r.story(o.trace)})
			shown[o.Schedule] = true
		}
	}
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Verdict != check.Broken || c.Schedule == "" || shown[c.Schedule] {
			continue
		}
		if trace := r.traceOf(c); trace != nil {
			all = append(all, Story{c.Name, r.story(trace)})
			shown[c.Schedule] = true
		}
	}
	return all
}

// traceOf returns the events of the schedule that shows what broke.
func (r *Result) traceOf(c *Check) []laneEvent {
	for i := range r.Outcomes {
		if o := &r.Outcomes[i]; o.Schedule == c.Schedule && o.trace != nil {
			return o.trace
		}
	}
	return c.trace
}

// scene is what happens in one turn in one lane, or in turns in a row in which
// messages arrive and nothing comes of it.
type scene struct {
	first, last int // turns
	lag         string
	column      int  // 0: no lane's
	message     bool // one arrives
	texts       []string
}

// story writes a dot in the lane and what happens beside the lanes.
func (r *Result) story(trace []laneEvent) []string {
	names, column := r.columns(trace)
	rows := [][]string{append(append([]string{"turn", ""}, names...), "")}
	turn := 0
	for _, s := range fold(r.scenes(trace, column)) {
		row := make([]string, len(names)+3)
		if s.first != turn {
			row[0] = strconv.Itoa(s.first)
			if s.last > s.first {
				row[0] += "–" + strconv.Itoa(s.last)
			}
		}
		turn = s.last
		row[1] = s.lag
		if s.column > 0 {
			row[1+s.column] = "●"
		}
		row[len(row)-1] = together(counted(s.texts))
		rows = append(rows, row)
	}
	lines := columns.Lines(rows, lineWidth)
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], unbroken, " ")
	}
	return lines
}

// unbroken is a blank at which no line is broken.
const unbroken = "\u00a0"

// together writes texts in one line that is broken between them alone.
func together(texts []string) string {
	for i := range texts {
		texts[i] = strings.ReplaceAll(texts[i], " ", unbroken)
	}
	return strings.Join(texts, ", ")
}

// columns returns the heads of the columns of a story, and the column of each
// lane, from 1 on. Nodes whose appliers did nothing and roads without a message
// have none.
func (r *Result) columns(trace []laneEvent) (names []string, column map[int]int) {
	used := map[int]bool{}
	for _, e := range trace {
		used[e.lane] = used[e.lane] || e.At > 0
	}
	column = map[int]int{}
	messages := 0
	for lane, name := range r.lanes {
		switch {
		case strings.Contains(name, ">"):
			if !used[lane] {
				continue
			}
			if messages == 0 {
				names = append(names, "messages")
				messages = len(names)
			}
			column[lane] = messages
		case used[lane] || !strings.Contains(name, "."):
			names = append(names, name)
			column[lane] = len(names)
		}
	}
	return names, column
}

// scenes are the events, one a scene.
func (r *Result) scenes(trace []laneEvent, column map[int]int) []scene {
	var scenes []scene
	lag := window{open: map[string]bool{}, many: r.whole()}
	for _, e := range trace {
		if e.At == 0 {
			continue // before the first turn
		}
		s := scene{first: int(e.At), last: int(e.At), lag: lag.mark(&e.Event), texts: []string{r.named(label(&e.Event))}}
		if e.lane != noLane {
			s.column = column[e.lane]
		}
		if s.message = e.Kind == message; s.message {
			s.texts[0] = r.lanes[e.lane]
		}
		scenes = append(scenes, s)
	}
	return scenes
}

// fold joins what happens in one turn in one lane, and turns that are nothing
// but messages.
func fold(scenes []scene) []scene {
	var folded []scene
	idle := func(i int) bool { // nothing else happens in its turn
		s := &scenes[i]
		return (i == 0 || scenes[i-1].last != s.first) && (i == len(scenes)-1 || scenes[i+1].first != s.first)
	}
	for i, s := range scenes {
		if n := len(folded); n > 0 {
			f := &folded[n-1]
			switch {
			case s.column != f.column, !steady(f.lag) && !steady(s.lag):
			case s.first == f.last && f.first == f.last,
				s.message && scenes[i-1].message && idle(i) && idle(i-1):
				f.last = s.last
				f.texts = append(f.texts, s.texts...)
				if !steady(s.lag) {
					f.lag = s.lag
				}
				continue
			}
		}
		folded = append(folded, s)
	}
	return folded
}

// steady says that a mark neither opens nor closes a window.
func steady(mark string) bool { return strings.TrimSpace(mark) == "" || strings.HasSuffix(mark, "│") }

// counted writes what comes several times in a row once.
func counted(texts []string) []string {
	var all []string
	for i := 0; i < len(texts); {
		n := 1
		for i+n < len(texts) && texts[i+n] == texts[i] {
			n++
		}
		text := texts[i]
		if n > 1 {
			text += "×" + strconv.Itoa(n)
		}
		all = append(all, text)
		i += n
	}
	return all
}

// window is the registration lag: the nodes on which it is open.
type window struct {
	open map[string]bool
	many bool // there are several nodes, so that it says which
}

// mark returns the mark beside an event.
func (w *window) mark(e *history.Event) string {
	before := len(w.open)
	switch e.Kind {
	case string(probe.ApplierPublished):
		w.open[e.Node] = true
	case string(probe.ApplierNotified):
		delete(w.open, e.Node)
	}
	node := ""
	if w.many {
		node = " " + e.Node
	}
	switch after := len(w.open); {
	case before == 0 && after > 0:
		return "lag ┌" + node
	case before > 0 && after == 0:
		return "    └" + node
	case after > before:
		return "    ├" + node
	case after < before:
		return "    ┤" + node
	case after > 0:
		return "    │"
	}
	return ""
}

// label says in a few words what an event is.
func label(e *history.Event) string {
	switch e.Kind {
	case history.RequestSent:
		return "search"
	case history.WriteBegin:
		return e.Detail
	case history.RequestAnswered, history.WriteEnd:
		if e.Status == 0 {
			return "→ no answer"
		}
		return "→ " + strconv.Itoa(e.Status)
	}
	text := e.Kind
	if e.Listener != "" {
		text += " " + e.Listener
	}
	if e.Limit > 0 && e.Kind != string(probe.AcquireBegin) {
		text += fmt.Sprintf(" %d/%d", e.Held, e.Limit)
	}
	if e.Search == "" || e.Kind == string(probe.CoordinatorRead) {
		if e.Version > 0 {
			text += fmt.Sprintf(" v%d", e.Version)
		}
	}
	if e.Kind == string(probe.Counted) {
		text = "wlm.counted on " + orNobody(e.Detail)
	}
	return text
}

func orNobody(group string) string {
	if group == "" {
		return "nobody"
	}
	return group
}

// groups returns the names of groups by id.
func (n *names) groups() map[string]string {
	all := map[string]string{}
	for c, id := range n.ids {
		if c.kind != "group" {
			continue
		}
		all[id] = c.name
		if c.number > 1 {
			all[id] += "#" + strconv.Itoa(c.number)
		}
	}
	return all
}

// groups returns the names of groups by id, as they were in the last execution.
func (x *fleet) groups() map[string]string {
	all := map[string]string{}
	if x.cluster == nil {
		return all
	}
	add := func(name string) { all[x.cluster.Group(name)] = name }
	for i := range x.file.Groups {
		add(x.file.Groups[i].Name)
	}
	actions := slices.Clone(x.file.Explore.Before)
	for _, actor := range x.file.Explore.Actors {
		actions = append(actions, actor.Value...)
	}
	for i := range actions {
		if actions[i].PutGroup != nil {
			add(actions[i].PutGroup.Name)
		}
	}
	return all
}
