package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/world"
)

// How often progress is told: as a bar on a terminal, as lines elsewhere.
const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 10 * time.Second
	barWidth  = 30
)

// progress tells how far a campaign is. It belongs to one goroutine.
type progress struct {
	out                     io.Writer
	terminal                bool
	total                   int
	ended, broken, doubtful int
	began, told             time.Time
}

func newProgress(out io.Writer, total int) *progress {
	f, isFile := out.(*os.File)
	return &progress{out: out, terminal: isFile && isatty.IsTerminal(f.Fd()), total: total, began: time.Now(), told: time.Now()}
}

// done tells of a run that has ended. One that did not hold is named at once.
func (p *progress) done(r *world.Result) {
	p.ended++
	switch r.Verdict {
	case check.Broken:
		p.broken++
	case check.Undecided:
		p.doubtful++
	}
	if r.Verdict != check.Held && p.total > 1 {
		p.clear()
		fmt.Fprintf(p.out, "%s: %s seed %d profile %s\n", r.Verdict, r.File, r.Seed, r.Profile)
	}
	every := lineEvery
	if p.terminal {
		every = barEvery
	}
	if time.Since(p.told) >= every {
		p.told = time.Now()
		p.tell()
	}
}

func (p *progress) tell() {
	text := fmt.Sprintf("%d of %d runs, %d broken, %d undecided, %v", p.ended, p.total, p.broken, p.doubtful, time.Since(p.began).Round(time.Second))
	if !p.terminal {
		fmt.Fprintln(p.out, text)
		return
	}
	full := barWidth * p.ended / p.total
	fmt.Fprintf(p.out, "\r\x1b[K[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), text)
}

// clear takes the bar away, so that a line can be written.
func (p *progress) clear() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// end is called when no run comes any more.
func (p *progress) end() { p.clear() }
