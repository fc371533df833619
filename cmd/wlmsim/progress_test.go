package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/campaign"
	"github.com/wlmsim/wlmsim/sim/check"
)

// tell has a campaign of ten runs, one every six seconds, of which the third
// one breaks.
func tell(t *testing.T, width int) string {
	var out bytes.Buffer
	synctest.Test(t, func(*testing.T) {
		p := newProgress(&out, "run", 10)
		p.width = width
		for i := range 10 {
			time.Sleep(6 * time.Second)
			f := campaign.Finished{File: "f.yaml", Seed: uint64(i), Profile: "reviewed", Verdict: check.Held}
			if i == 2 {
				f.Verdict = check.Broken
			}
			p.done(f)
		}
		p.end()
	})
	return out.String()
}

func TestProgressIsALineNowAndThenAndNamesWhatBroke(t *testing.T) {
	require.Equal(t, `2 of 10 runs, 0 broken, 0 undecided, 12s, about 48s left
broken: f.yaml seed 2 profile reviewed
4 of 10 runs, 1 broken, 0 undecided, 24s, about 36s left
6 of 10 runs, 1 broken, 0 undecided, 36s, about 24s left
8 of 10 runs, 1 broken, 0 undecided, 48s, about 12s left
10 of 10 runs, 1 broken, 0 undecided, 1m0s
`, tell(t, 0))
}

func TestProgressIsABarOnATerminal(t *testing.T) {
	text := tell(t, 100)
	require.Contains(t, text, "\r\x1b[K[###...........................] 1 of 10 runs, 0 broken, 0 undecided, 6s, about 54s left\r\x1b[K")
	require.Contains(t, text, "\r\x1b[Kbroken: f.yaml seed 2 profile reviewed\n")
	require.True(t, bytes.HasSuffix([]byte(text), []byte("\r\x1b[K")), "nothing of the bar stays")
}

// A line that is wider than the terminal would leave its first part behind.
func TestABarFitsANarrowTerminal(t *testing.T) {
	for _, width := range []int{10, 40, 60, 90} {
		for line := range strings.SplitSeq(tell(t, width), "\r\x1b[K") {
			if !strings.HasPrefix(line, "broken: ") {
				require.Less(t, len(line), width)
			}
		}
	}
}

// What takes long is told of while it goes on.
func TestProgressNamesWhatIsUnderWayForLong(t *testing.T) {
	var out bytes.Buffer
	synctest.Test(t, func(*testing.T) {
		p := newProgress(&out, "exploration", 2)
		for i := range 20 {
			time.Sleep(time.Second)
			p.tick([]campaign.Underway{
				{File: "quick.yaml", Profile: "reviewed", For: time.Second},
				{File: "slow.yaml", Profile: "submitted", For: time.Duration(i) * time.Second, Schedules: uint64(1000 * i)},
			})
		}
		p.done(campaign.Finished{File: "slow.yaml", Profile: "submitted", Verdict: check.Undecided})
		time.Sleep(lineEvery)
		p.tick([]campaign.Underway{{File: "quick.yaml", Profile: "reviewed", Seed: 3, For: 30 * time.Second}})
	})
	require.Equal(t, `0 of 2 explorations, 0 broken, 0 undecided, 10s; under way: slow.yaml profile submitted, schedule 9000
0 of 2 explorations, 0 broken, 0 undecided, 20s; under way: slow.yaml profile submitted, schedule 19000
undecided: slow.yaml profile submitted
1 of 2 explorations, 0 broken, 1 undecided, 30s, about 30s left; under way: quick.yaml profile reviewed seed 3 for 30s
`, out.String())
}
