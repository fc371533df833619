package shrink_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/shrink"
	"github.com/wlmsim/wlmsim/sim/simtest"
)

func TestMain(m *testing.M) {
	if !soaked() { // each draw is shrunk to the end; the command line has the last word
		if err := flag.Set("rapid.checks", "2"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

func silent(*scenario.File) {}

// trait is something that a planted fault needs of a file.
type trait struct {
	name string
	has  func(*scenario.File) bool
}

// traits of a file, each of which it has.
func traits(f *scenario.File) []trait {
	filled := f.Filled()
	all := []trait{
		{"two managers", func(f *scenario.File) bool { return f.Filled().Cluster.Managers >= 2 }},
		{"two data nodes", func(f *scenario.File) bool { return f.Filled().Cluster.Data >= 2 }},
		{"a rule", func(f *scenario.File) bool { return len(f.Rules) > 0 }},
	}
	for i := range f.Steps {
		name, at := f.Steps[i].Name(), filled.Steps[i].At/2
		all = append(all,
			trait{name, func(f *scenario.File) bool {
				return slices.ContainsFunc(f.Steps, func(s scenario.Step) bool { return s.Name() == name })
			}},
			trait{name + " late", func(f *scenario.File) bool {
				return slices.ContainsFunc(f.Steps, func(s scenario.Step) bool { return s.Name() == name && s.At >= at })
			}})
	}
	for _, g := range f.Groups {
		all = append(all, trait{"group " + g.Name, func(f *scenario.File) bool {
			return slices.ContainsFunc(f.Groups, func(o scenario.Group) bool { return o.Name == g.Name })
		}})
	}
	return slices.DeleteFunc(all, func(t trait) bool { return !t.has(f) })
}

// Promises 1 and 2, against a naive model: a fault needs some traits of a file,
// or one of two sets of them. What comes out has it, is no larger, and no move
// from it has it.
func TestTheLeastFileFailsAndNoMoveFromItDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := simtest.Scenarios().Draw(t, "file")
		some := traits(f)
		var needs [2][]trait
		for i := range needs {
			for range rapid.IntRange(0, 3).Draw(t, "traits") {
				needs[i] = append(needs[i], rapid.SampledFrom(some).Draw(t, "trait"))
			}
		}
		fails := func(f *scenario.File) bool {
			return slices.ContainsFunc(needs[:], func(need []trait) bool {
				return !slices.ContainsFunc(need, func(t trait) bool { return !t.has(f) })
			})
		}
		least, done := shrink.Least(context.Background(), f, fails, func(g *scenario.File) {
			if !fails(g) || shrink.SizeOf(g).Compare(shrink.SizeOf(f)) >= 0 {
				t.Fatalf("told of a file that does not fail or is not smaller:\n%s", scenario.Print(g))
			}
		})
		if !done || !fails(least) || shrink.SizeOf(least).Compare(shrink.SizeOf(f)) > 0 {
			t.Fatalf("done %v:\n%s\nof\n%s", done, scenario.Print(least), scenario.Print(f))
		}
		for _, g := range shrink.Moves(least) {
			if fails(g) {
				t.Fatalf("one move further:\n%s\nthan\n%s", scenario.Print(g), scenario.Print(least))
			}
		}
	})
}

// Every move is a checked file that is smaller and prints as it parses; some of
// each file are looked at.
func TestAMoveIsASmallerFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.OneOf(simtest.Scenarios(), simtest.Explorations()).Draw(t, "file")
		moves := shrink.Moves(f)
		if len(moves) == 0 {
			t.Fatalf("nothing can be taken out of\n%s", scenario.Print(f))
		}
		for range 20 {
			g := rapid.SampledFrom(moves).Draw(t, "move")
			back, err := scenario.Parse("moved", scenario.Print(g))
			if err != nil || !scenario.Equal(g, back) {
				t.Fatalf("%v:\n%s", err, scenario.Print(g))
			}
			if shrink.SizeOf(g).Compare(shrink.SizeOf(f)) >= 0 {
				t.Fatalf("not smaller:\n%s\nthan\n%s", scenario.Print(g), scenario.Print(f))
			}
		}
	})
}

// Without a need of anything, what is left is a file that says nothing.
func TestOfAFaultThatNeedsNothingNothingIsLeft(t *testing.T) {
	f, err := scenario.Read("../scenario/testdata/design.yaml")
	require.NoError(t, err)
	least, done := shrink.Least(context.Background(), f, func(*scenario.File) bool { return true }, silent)
	require.True(t, done)
	require.Equal(t, "version: 1\nname: "+f.Name+"\nseed: 7\ncluster:\n  managers: 1\n  data: 1\n", string(scenario.Print(least)))
}

// What a fault needs stays, and numbers come down to what it needs.
func TestWhatAFaultNeedsStays(t *testing.T) {
	f, err := scenario.Read("../scenario/testdata/design.yaml")
	require.NoError(t, err)
	least, done := shrink.Least(context.Background(), f, func(g *scenario.File) bool {
		return len(g.Load) > 0 && g.Load[0].For >= 3_000_000_000 &&
			slices.ContainsFunc(g.Steps, func(s scenario.Step) bool { return s.Crash != nil && s.Crash.Node == "d3" })
	}, silent)
	require.True(t, done)
	require.Len(t, least.Load, 1)
	require.Equal(t, "5s", least.Load[0].For.String(), "the next round number")
	require.Equal(t, []string{"crash"}, names(least))
	require.Equal(t, 3, least.Filled().Cluster.Data, "there is no d3 otherwise")
	require.Equal(t, 1, least.Filled().Cluster.Managers)
}

// The profile of a flaw becomes the one switch that it needs.
func TestAProfileBecomesItsSwitches(t *testing.T) {
	f, err := scenario.Parse("f", []byte("version: 1\nname: f\nprofile: submitted\n"))
	require.NoError(t, err)
	least, _ := shrink.Least(context.Background(), f, func(g *scenario.File) bool {
		return g.Profile == "submitted" || g.Switches["principal_join"] == "comma"
	}, silent)
	require.Empty(t, least.Profile)
	require.Equal(t, map[string]string{"principal_join": "comma"}, least.Switches)
}

// When the time is over, what was found so far comes back.
func TestTheContextEndsIt(t *testing.T) {
	f, err := scenario.Read("../scenario/testdata/design.yaml")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	least, done := shrink.Least(ctx, f, func(g *scenario.File) bool { cancel(); return true }, silent)
	require.False(t, done)
	require.Negative(t, shrink.SizeOf(least).Compare(shrink.SizeOf(f)))
}

// names lists what the steps and the actors of a file do.
func names(f *scenario.File) []string {
	var all []string
	for i := range f.Steps {
		all = append(all, f.Steps[i].Name())
	}
	if f.Explore != nil {
		for _, a := range f.Explore.Actors {
			for i := range a.Value {
				all = append(all, fmt.Sprintf("%s: %s", a.Name, a.Value[i].Name()))
			}
		}
	}
	return all
}
