package netsim_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/wlmsim/wlmsim/sim/bubble"
	"github.com/wlmsim/wlmsim/sim/netsim"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("WLMSIM_SOAK") == "1" {
		check(flag.Set("rapid.checks", "20000"))
	}
	goleak.VerifyTestMain(m)
}

// inBubble runs f in a bubble with a network that is closed behind it. That
// nothing is left blocked is part of every test.
func inBubble(t testing.TB, cfg netsim.Config, f func(*netsim.Network)) {
	t.Helper()
	err := bubble.Run(func() {
		n, err := netsim.New(cfg)
		if err != nil {
			panic(err)
		}
		defer n.Close()
		f(n)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// must returns the value, or ends the bubble's function with the error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// exactly is a link without chance.
func exactly(d time.Duration) netsim.Faults {
	return netsim.Faults{Latency: netsim.Range{Min: d, Max: d}}
}
