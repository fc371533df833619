//go:debug randseednop=0

package exact_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/exact"
	"github.com/wlmsim/wlmsim/sim/exact/overlay"
)

// counts returns the count for an ordinary or for a soak run.
func counts(ordinary, full int) int {
	if os.Getenv("WLMSIM_SOAK") != "" {
		return full
	}
	return ordinary
}

// laid is the overlay of the installed toolchain, where make exact has it too,
// so that both find each other's builds in the cache.
var laid = sync.OnceValues(func() (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	return overlay.Write(strings.TrimSpace(string(root)), filepath.Join("..", "..", "bin", "_overlay"))
})

// built returns the path of the trial command, built with the overlay.
var built = sync.OnceValues(func() (string, error) { return build("trial") })

// folder is where commands are built; TestMain removes it.
var folder string

func TestMain(m *testing.M) {
	made, err := os.MkdirTemp("", "exact-")
	if err != nil {
		panic(err)
	}
	folder = made
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// build builds the trial command with the overlay and more flags.
func build(name string, flags ...string) (string, error) {
	file, err := laid()
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, name)
	args := append([]string{"build", "-overlay", file, "-tags", "exact", "-o", path}, flags...)
	if out, err := exec.Command("go", append(args, "./testdata/trial")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
}

func mustBuild(t *testing.T) string {
	t.Helper()
	path, err := built()
	require.NoError(t, err)
	return path
}

// long is how long the trial's load lasts, in virtual time.
var long = fmt.Sprint(counts(6, 30), "s")

// outcome runs the trial in a process of its own and returns what it prints.
func outcome(path string, environment []string, args ...string) (string, error) {
	c := exec.Command(path, append([]string{"-quiet", "-for", long}, args...)...)
	c.Env = append(os.Environ(), environment...)
	var complaint bytes.Buffer
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, complaint.Bytes())
	}
	return string(out), nil
}

// outcomes runs the trial n times, so many at once, each in a process of its
// own with an environment of another size, and returns how often each outcome
// was met.
func outcomes(t *testing.T, path string, n, atOnce int, args ...string) map[string]int {
	t.Helper()
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		met   = map[string]int{}
		errs  []error
		slots = make(chan struct{}, atOnce)
	)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			out, err := outcome(path, []string{"FILLER=" + strings.Repeat("x", 97*i%1000)}, args...)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			}
			met[out]++
		})
	}
	all.Wait()
	require.Empty(t, errs)
	return met
}

// busy keeps every processor of the machine busy until the test ends.
func busy(t *testing.T) {
	var stop atomic.Bool
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for !stop.Load() {
			}
		})
	}
	t.Cleanup(func() { stop.Store(true); all.Wait() })
}

// Promise 1: five nodes, gossip, Bolt, a partition and load; one trace, while
// the processes disturb each other. Full counts have the race detector too: its
// build and its runs take minutes.
func TestOneSeedIsOneTrace(t *testing.T) {
	path := mustBuild(t)
	require.Len(t, outcomes(t, path, counts(5, 100), 5), 1)
	for range counts(0, 1) {
		race, err := build("race", "-race")
		require.NoError(t, err)
		require.Len(t, outcomes(t, race, 25, 2), 1)
	}

	one, err := outcome(path, nil)
	require.NoError(t, err)
	other, err := outcome(path, nil, "-seed", "2")
	require.NoError(t, err)
	require.NotEqual(t, one, other)
}

func TestOneSeedIsOneTraceOnABusyMachine(t *testing.T) {
	path := mustBuild(t)
	busy(t)
	require.Len(t, outcomes(t, path, counts(2, 100), 1), 1)
}

func TestTheShuffleIsAnotherTraceAndOne(t *testing.T) {
	path := mustBuild(t)
	shuffled := outcomes(t, path, counts(2, 25), 2, "-shuffle")
	require.Len(t, shuffled, 1)
	plain, err := outcome(path, nil)
	require.NoError(t, err)
	require.NotContains(t, shuffled, plain)
}

// A second run of a process repeats as the second run of such a process.
func TestTheSecondRunOfAProcessRepeatsAsSuch(t *testing.T) {
	require.Len(t, outcomes(t, mustBuild(t), counts(2, 25), 2, "-runs", "2"), 1)
}

// The check can fail: with disorder planted, traces differ.
func TestPlantedDisorderIsSeen(t *testing.T) {
	for _, plant := range []string{"outside", "clock"} {
		require.Greater(t, len(outcomes(t, mustBuild(t), 3, 3, "-plant", plant)), 1, plant)
	}
}

func TestTheStartUpSeedComesFromTheEnvironment(t *testing.T) {
	path := mustBuild(t)
	drawn := func(environment ...string) string {
		out, err := outcome(path, environment, "-startup")
		require.NoError(t, err)
		return out
	}
	require.Equal(t, drawn(), drawn())
	require.Equal(t, drawn("WLMSIM_STARTUP_SEED=7"), drawn("FILLER=x", "WLMSIM_STARTUP_SEED=7"))
	require.NotEqual(t, drawn(), drawn("WLMSIM_STARTUP_SEED=7"))
	require.NotEqual(t, drawn("WLMSIM_STARTUP_SEED=8"), drawn("WLMSIM_STARTUP_SEED=7"))
}

// The tests of the switch itself need the overlay; so does whoever tests with
// it, in this way.
func TestGoTestTakesTheOverlay(t *testing.T) {
	file, err := laid()
	require.NoError(t, err)
	out, err := exec.Command("go", "test", "-overlay", file, "-tags", "exact", "-run", "^TestSwitch", "-v", ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestSwitch")
}

func TestTheTagWithoutTheOverlayDoesNotLink(t *testing.T) {
	out, err := exec.Command("go", "build", "-tags", "exact", "-o", os.DevNull, "./testdata/trial").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "sim/exact.begin")
}

// Promise 2.
func TestBeginSeedsTheGlobalSource(t *testing.T) {
	first := func(seed uint64) int64 {
		exact.Begin(seed, exact.Options{})
		defer exact.End()
		return rand.Int63()
	}
	require.Equal(t, first(7), first(7))
	require.NotEqual(t, first(7), first(8))
}
