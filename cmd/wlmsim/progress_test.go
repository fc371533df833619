package main

import (
	"bytes"
	"testing"
	"testing/synctest"

	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/world"
)

// tell has a campaign of ten runs, one every six seconds, of which the third
// one breaks.
func tell(t *testing.T, terminal bool) string {
	var out bytes.Buffer
	synctest.Test(t, func(*testing.T) {
		p := newProgress(&out, 10)
		p.terminal = terminal
		for i := range 10 {
			time.Sleep(6 * time.Second)
			r := &world.Result{File: "f.yaml", Seed: uint64(i), Profile: "reviewed", Verdict: check.Held}
			if i == 2 {
				r.Verdict = check.Broken
			}
			p.done(r)
		}
		p.end()
	})
	return out.String()
}

func TestProgressIsALineNowAndThenAndNamesWhatBroke(t *testing.T) {
	require.Equal(t, `2 of 10 runs, 0 broken, 0 undecided, 12s
broken: f.yaml seed 2 profile reviewed
4 of 10 runs, 1 broken, 0 undecided, 24s
6 of 10 runs, 1 broken, 0 undecided, 36s
8 of 10 runs, 1 broken, 0 undecided, 48s
10 of 10 runs, 1 broken, 0 undecided, 1m0s
`, tell(t, false))
}

func TestProgressIsABarOnATerminal(t *testing.T) {
	text := tell(t, true)
	require.Contains(t, text, "\r\x1b[K[###...........................] 1 of 10 runs, 0 broken, 0 undecided, 6s\r\x1b[K")
	require.Contains(t, text, "\r\x1b[Kbroken: f.yaml seed 2 profile reviewed\n")
	require.True(t, bytes.HasSuffix([]byte(text), []byte("\r\x1b[K")), "nothing of the bar stays")
}
