package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"

	"github.com/wlmsim/wlmsim/sim/campaign"
	"github.com/wlmsim/wlmsim/sim/check"
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
	width                   int    // of the terminal; 0: it is none
	noun                    string // what there are many of
	total                   int
	ended, broken, doubtful int
	began, told             time.Time
	underway                []campaign.Underway
}

func newProgress(out io.Writer, noun string, total int) *progress {
	return &progress{out: out, width: widthOf(out), noun: noun, total: total, began: time.Now(), told: time.Now()}
}

// widthOf is the width of the terminal that is written to, 0 if it is none.
func widthOf(out io.Writer) int {
	f, isFile := out.(*os.File)
	if !isFile || !isatty.IsTerminal(f.Fd()) || os.Getenv("TERM") == "dumb" {
		return 0
	}
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
		return int(size.Col)
	}
	return 80
}

// done tells of what has ended. What did not hold is named at once.
func (p *progress) done(f campaign.Finished) {
	p.ended++
	switch f.Verdict {
	case check.Broken:
		p.broken++
	case check.Undecided:
		p.doubtful++
	}
	if f.Verdict != check.Held && f.Verdict != "" && p.total > 1 {
		p.clear()
		seed := ""
		if p.noun == "run" {
			seed = fmt.Sprintf(" seed %d", f.Seed)
		}
		fmt.Fprintf(p.out, "%s: %s%s profile %s\n", f.Verdict, f.File, seed, f.Profile)
	}
	p.now()
}

// tick tells, from time to time, what is under way.
func (p *progress) tick(underway []campaign.Underway) {
	p.underway = underway
	p.now()
	p.underway = nil // it is out of date when something ends
}

func (p *progress) now() {
	every := lineEvery
	if p.width > 0 {
		every = barEvery
	}
	if time.Since(p.told) >= every {
		p.told = time.Now()
		p.tell()
	}
}

func (p *progress) tell() {
	text := fmt.Sprintf("%d of %d %ss, %d broken, %d undecided, %v", p.ended, p.total, p.noun, p.broken, p.doubtful, time.Since(p.began).Round(time.Second))
	if left := p.left(); left > 0 {
		text += fmt.Sprintf(", about %v left", left)
	}
	text += p.slowest()
	if p.width == 0 {
		fmt.Fprintln(p.out, text)
		return
	}
	full := barWidth * p.ended / p.total
	line := fmt.Sprintf("[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), text)
	if p.width < barWidth+utf8.RuneCountInString(text) {
		line = text
	}
	if runes := []rune(line); len(runes) >= p.width {
		line = string(runes[:p.width-1]) // a line that wraps could not be taken away again
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s", line)
}

// left guesses how much longer it takes, from how long it took so far; 0: who
// knows.
func (p *progress) left() time.Duration {
	if p.ended == 0 || p.ended == p.total {
		return 0
	}
	took := time.Since(p.began)
	return time.Duration(float64(took) / float64(p.ended) * float64(p.total-p.ended)).Round(time.Second)
}

// slowest names what is under way for longest, if that is long.
func (p *progress) slowest() string {
	var u campaign.Underway
	for _, one := range p.underway {
		if one.For > u.For {
			u = one
		}
	}
	if u.For < lineEvery/2 {
		return ""
	}
	text := fmt.Sprintf("; under way: %s profile %s", u.File, u.Profile)
	if u.Schedules > 0 {
		return text + fmt.Sprintf(", schedule %d", u.Schedules)
	}
	return text + fmt.Sprintf(" seed %d for %v", u.Seed, u.For.Round(time.Second))
}

// clear takes the bar away, so that a line can be written.
func (p *progress) clear() {
	if p.width > 0 {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// end is called when nothing comes any more.
func (p *progress) end() { p.clear() }
