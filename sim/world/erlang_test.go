package world_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
)

const (
	// meanService of the searches in these tests.
	meanService = 100 * time.Millisecond
	// batches of requests whose shares are compared: refused requests come in
	// clusters, so a single request says less than a naive error bar assumes.
	batches = 20
	// within is how many standard errors a share may be away.
	within = 3
)

// requests is how many requests a measured share rests on.
func requests() int {
	switch {
	case os.Getenv("WLMSIM_SOAK") != "":
		return 1_000_000
	case raceDetector:
		return 10_000
	}
	return 100_000
}

// erlangB is the share that is refused of Poisson arrivals with offered load a
// at c permits, whatever the distribution of the service time.
func erlangB(c int, a float64) float64 {
	b := 1.0
	for i := 1; i <= c; i++ {
		b = a * b / (float64(i) + a*b)
	}
	return b
}

func TestErlangBHasItsKnownValues(t *testing.T) {
	for _, v := range []struct {
		c    int
		a, b float64
	}{{10, 5, 0.0184}, {10, 8, 0.1217}, {10, 12, 0.3019}, {50, 45, 0.0541}} {
		require.InDelta(t, v.b, erlangB(v.c, v.a), 5e-5)
	}
}

// offered is a scenario of Poisson arrivals at coordinators, each of which has
// its share of the load, in batches that follow one another after a warm-up.
// The searches of a coordinator meet its own permits only. The network takes
// next to no time, since a permit is held while messages are under way, too.
func offered(t *testing.T, c int, a float64, coordinators int, service string) (f *scenario.File, batch time.Duration) {
	rate := a / meanService.Seconds()
	batch = time.Duration(float64(requests()/batches) / rate * float64(time.Second)).Round(time.Millisecond)
	warmUp := 50 * meanService
	var text strings.Builder
	fmt.Fprintf(&text, `version: 1
name: refused as Erlang says
cluster: {managers: 1, data: %d, workers: 10000, network: {latency: 1us..2us}, indices: {logs: {shards: 1}}}
groups:
  - {name: g, resiliency_mode: enforced, resource_limits: {cpu: 0.3}, throttling: {attribute: group, node_limit: %d}}
load:
`, coordinators, c)
	for d := range coordinators {
		for i := range batches + 1 {
			from, length := warmUp+time.Duration(i-1)*batch, batch
			if i == 0 {
				from, length = 0, warmUp
			}
			fmt.Fprintf(&text, "  - {name: %s, user: u, group: g, index: logs, via: [d%d], service_time: %s, arrive: {poisson: %g/s}, from: %s, for: %s}\n",
				batchName(i, d), d+1, service, rate/float64(coordinators), from, length)
		}
	}
	f, err := scenario.Parse("erlang.yaml", []byte(text.String()))
	require.NoError(t, err)
	return f, batch
}

func batchName(batch, coordinator int) string { return fmt.Sprintf("b%dd%d", batch, coordinator+1) }

// estimate returns the mean of batches and its standard error.
func estimate(values []float64) (mean, standardError float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	var squares float64
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	n := float64(len(values))
	return mean, math.Sqrt(squares / (n - 1) / n)
}

// refused returns the share of refused requests of each batch.
func refused(t *testing.T, r *world.Result, coordinators int) []float64 {
	shares := make([]float64, batches)
	for i := range shares {
		sent, throttled := 0, 0
		for d := range coordinators {
			l := r.Loads[batchName(i+1, d)]
			require.Equal(t, l.Sent, l.Completed+l.Throttled, "every request was admitted or refused")
			sent += l.Sent
			throttled += l.Throttled
		}
		shares[i] = float64(throttled) / float64(sent)
	}
	return shares
}

// The share of refused searches is Erlang's B(c, a), whatever the distribution
// of the service time; and with n coordinators that each take a share of the
// load it is B(c, a/n) on each.
func TestTheRefusedShareIsErlangs(t *testing.T) {
	for _, service := range []string{"{exponential: {mean: 100ms}}", "100ms"} {
		for _, v := range []struct {
			c            int
			a            float64
			coordinators int
		}{{10, 5, 1}, {10, 8, 1}, {10, 12, 1}, {50, 45, 1}, {3, 8, 4}} {
			t.Run(fmt.Sprintf("c=%d a=%g n=%d %s", v.c, v.a, v.coordinators, service), func(t *testing.T) {
				f, _ := offered(t, v.c, v.a, v.coordinators, service)
				r, err := world.Run(f, world.Options{Bare: true})
				require.NoError(t, err)
				got, standardError := estimate(refused(t, r, v.coordinators))
				want := erlangB(v.c, v.a/float64(v.coordinators))
				t.Logf("refused %.5f, Erlang %.5f, %.1f standard errors of %.5f", got, want, math.Abs(got-want)/standardError, standardError)
				require.InDelta(t, want, got, within*standardError)
				if !raceDetector { // one permit more would be seen
					require.Greater(t, math.Abs(erlangB(v.c+1, v.a/float64(v.coordinators))-got), within*standardError)
				}
			})
		}
	}
}

// Little's law: the mean number of permits held is the rate of admitted
// searches times how long each holds its permit.
func TestPermitsHeldObeyLittlesLaw(t *testing.T) {
	const every = 37 * time.Millisecond // no multiple of anything else here
	f, batch := offered(t, 10, 8, 1, "{exponential: {mean: 100ms}}")
	held := make([]float64, batches)
	r, err := world.Drive(f, world.Options{Bare: true}, func(c *world.Cluster) {
		d1, err := c.Node("d1")
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(50*meanService - c.Now())
		for i := range held {
			end, samples, sum := c.Now()+batch, 0, 0
			for c.Now() < end {
				time.Sleep(every)
				for _, p := range d1.Throttle().Permits() {
					sum += p.Held
				}
				samples++
			}
			held[i] = float64(sum) / float64(samples)
		}
	})
	require.NoError(t, err)
	differences := make([]float64, batches)
	for i := range differences {
		admitted := float64(r.Loads[batchName(i+1, 0)].Completed)
		differences[i] = held[i] - admitted/batch.Seconds()*meanService.Seconds()
	}
	mean, _ := estimate(held)
	difference, standardError := estimate(differences)
	t.Logf("held %.3f, off by %.4f, standard error %.4f", mean, difference, standardError)
	require.InDelta(t, 0, difference, within*standardError)
	require.InDelta(t, 8*(1-erlangB(10, 8)), mean, 0.5)
}
