package campaign_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/campaign"
	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
)

const two = `version: 1
name: Two searches in every order
explore:
  node: m1
  before: [{put_group: {name: late, resiliency_mode: enforced, resource_limits: {memory: 0.1}, throttling: {attribute: group, node_limit: 1}}}]
  actors:
    first:  [{search: {id: first, user: bob, group: late}}]
    second: [{search: {id: second, user: bob, group: late}}]
  observe: {first: first.status, second: second.status}
`

// Explore explores, and what the scenario's name says happens after the fifth
// schedule.
func (w *fake) Explore(e campaign.Exploration) (*explore.Result, error) {
	f, err := scenario.Read(e.File, e.Set...)
	if err != nil {
		return nil, err
	}
	o, err := w.Options(&e)
	if err != nil {
		return nil, err
	}
	o.Context = &planted{Context: context.Background(), word: e.Scenario, forever: make(chan struct{})}
	return explore.Run(f, o)
}

// planted is a context that is asked between two schedules, and does harm then.
type planted struct {
	context.Context
	word    string
	asked   atomic.Int32
	forever chan struct{} // of no bubble, so that waiting for it stops virtual time
}

// Err implements [context.Context].
func (p *planted) Err() error {
	if p.asked.Add(1) < 6 || p.word == "whole" {
		return nil
	}
	switch p.word {
	case "panic":
		go panic("planted") // on a goroutine of the bubble
	case "kill":
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
	}
	<-p.forever
	return nil
}

// explorations of the same file, each with its word.
func explorations(t *testing.T, words ...string) []campaign.Exploration {
	t.Helper()
	path := filepath.Join(t.TempDir(), "two.yaml")
	require.NoError(t, os.WriteFile(path, []byte(two), 0o666))
	var all []campaign.Exploration
	for _, word := range words {
		all = append(all, campaign.Exploration{Scenario: word, File: path, Profile: "reviewed"})
	}
	return all
}

func exploredBy(t *testing.T, c campaign.Config, all []campaign.Exploration) []campaign.Explored {
	t.Helper()
	c.Start = start("fake")
	explored, err := campaign.Explore(t.Context(), c, all)
	require.NoError(t, err)
	require.Len(t, explored, len(all))
	return explored
}

// Promise 7, and that what is explored in a worker is what is explored here.
func TestAnExplorationThatDiesNamesTheScheduleUnderWay(t *testing.T) {
	t.Parallel()
	all := explorations(t, "whole", "panic", "kill", "whole")
	explored := exploredBy(t, campaign.Config{Jobs: 1}, all)

	f, err := scenario.Read(all[0].File)
	require.NoError(t, err)
	want, err := explore.Run(f, explore.Options{Path: all[0].File})
	require.NoError(t, err)
	for _, i := range []int{0, 3} {
		got := explored[i].Result
		got.WallSeconds = want.WallSeconds
		require.Equal(t, written(t, want), written(t, got))
	}

	for i, c := range map[int]struct {
		verdict check.Verdict
		message string
	}{
		1: {check.Broken, "a goroutine of the explored nodes panicked: planted"},
		2: {check.Undecided, "the process of the run ended: signal: killed"},
	} {
		requireUnderWay(t, explored[i].Result, c.verdict, c.message)
	}
}

// requireUnderWay asserts that a result has nothing but a schedule, which is
// one of the file.
func requireUnderWay(t *testing.T, r *explore.Result, v check.Verdict, message string) {
	t.Helper()
	require.Equal(t, v, r.Verdict)
	require.Len(t, r.Checks, 1)
	require.Contains(t, r.Checks[0].Message, message)
	s, err := explore.ParseSchedule(r.Checks[0].Schedule)
	require.NoError(t, err)
	require.NotEmpty(t, s)
	require.Equal(t, "wlmsim explore "+r.File+" --profile reviewed --schedule '"+s.String()+"'", r.Repeat)
	f, err := scenario.Read(r.File)
	require.NoError(t, err)
	again, err := explore.Run(f, explore.Options{Schedule: s})
	require.NoError(t, err)
	require.Equal(t, s.String(), again.Outcomes[0].Schedule)
}

func written(t *testing.T, r *explore.Result) string {
	var text strings.Builder
	for _, format := range explore.Formats() {
		require.NoError(t, explore.Write(&text, format, []*explore.Result{r}, func(string, int) string { return "" }))
	}
	return text.String()
}

// Promise 3.
func TestAnExplorationThatTakesNoTurnIsUndecided(t *testing.T) {
	t.Parallel()
	explored := exploredBy(t, campaign.Config{Jobs: 1, Limit: 5 * time.Second}, explorations(t, "hang"))
	requireUnderWay(t, explored[0].Result, check.Undecided, "no turn was taken for 5s of wall time; it was held up by:\ngoroutine ")
	require.Contains(t, explored[0].Result.Checks[0].Message, "campaign_test.(*planted).Err")
}

func TestWhatCannotBeExploredIsAMisfit(t *testing.T) {
	t.Parallel()
	all := explorations(t, "whole", "whole", "whole")
	all[0].Schedule = explore.Schedule{"third"}
	all[1].File = "is/not/there.yaml"
	explored := exploredBy(t, campaign.Config{}, all)
	require.ErrorIs(t, explored[0].Misfit, explore.ErrUsage)
	require.ErrorContains(t, explored[0].Misfit, `lane "third", which is unknown`)
	require.NoError(t, explored[1].Misfit)
	require.Equal(t, check.Undecided, explored[1].Result.Verdict)
	require.Contains(t, explored[1].Result.Checks[0].Message, "is/not/there.yaml")
	require.Equal(t, "wlmsim explore is/not/there.yaml --profile reviewed", explored[1].Result.Repeat)
	require.Equal(t, check.Held, explored[2].Result.Verdict)
}

// Tick is told how many schedules were begun.
func TestATickTellsOfWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var seen []campaign.Underway
	_, err := campaign.Explore(ctx, campaign.Config{Start: start("fake"), Tick: func(all []campaign.Underway) {
		if len(all) > 0 && all[0].Schedules > 0 {
			seen = append(seen, all...)
			stop()
		}
	}}, explorations(t, "hang"))
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, seen, 1)
	require.True(t, strings.HasSuffix(seen[0].File, "two.yaml"))
	require.Positive(t, seen[0].For)
}

// What is left of a file is what shrinking leaves here.
func TestAFileShrinksInAWorker(t *testing.T) {
	t.Parallel()
	all := explorations(t, "whole")
	all[0].Set = []string{"explore.forbid=[second == 429]"}
	explored := exploredBy(t, campaign.Config{}, all)
	require.Equal(t, check.Broken, explored[0].Result.Verdict)
	hand, err := campaign.NewHand(campaign.Config{Start: start("real")})
	require.NoError(t, err)
	defer hand.Close()
	s := campaign.Shrinking{File: all[0].File, Set: all[0].Set, Path: "small.yaml", Time: time.Hour}
	small, err := hand.Shrink(t.Context(), s, explored[0].Result)
	require.NoError(t, err)
	require.Equal(t, "forbid second == 429", small.Failure.Check)
	require.NotEmpty(t, small.Failure.Schedule)
	require.Positive(t, small.Tried)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = hand.Shrink(ctx, s, explored[0].Result)
	require.ErrorIs(t, err, context.Canceled)
}

// An exploration without notes notes nothing, also after one that had some.
func TestAnExplorationWithoutNotesNotesNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	var d campaign.Doer
	o, err := d.Options(&campaign.Exploration{Notes: t.TempDir()})
	require.NoError(t, err)
	require.NotNil(t, o.Box)
	o, err = d.Options(&campaign.Exploration{})
	require.NoError(t, err)
	require.Nil(t, o.Box)
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, entries)
}

// However many outcomes an exploration had, its file shrinks: a task is as long
// as what shrinking asks for.
func TestAFileShrinksWhateverItsOutcomes(t *testing.T) {
	t.Parallel()
	all := explorations(t, "whole")
	set := []string{"explore.forbid=[second == 429]"}
	r := &explore.Result{
		Profile: "reviewed", Strategy: explore.DFS,
		Outcomes: slices.Repeat([]explore.Outcome{{Schedule: strings.Repeat("first second ", 100)}}, campaign.MaxTask/1000),
		Checks: []explore.Check{{
			Result: check.Result{Name: "forbid second == 429", Verdict: check.Broken, Message: "a forbidden outcome can happen: x"}, Schedule: "update",
		}},
	}
	hand, err := campaign.NewHand(campaign.Config{Start: start("real")})
	require.NoError(t, err)
	defer hand.Close()
	small, err := hand.Shrink(t.Context(), campaign.Shrinking{File: all[0].File, Set: set, Path: "small.yaml", Time: time.Hour}, r)
	require.NoError(t, err)
	require.Equal(t, "forbid second == 429", small.Failure.Check)
}

// many has too many orders for anybody to wait for.
const many = `version: 1
name: Many orders
explore:
  node: m1
  actors:
    a: [{search: {user: bob}}, {search: {user: bob}}, {search: {user: bob}}]
    b: [{search: {user: bob}}, {search: {user: bob}}, {search: {user: bob}}]
    c: [{put_group: {name: late, resiliency_mode: enforced, resource_limits: {memory: 0.1}}}]
  observe: {held: outcomes("m1").completed}
`

// Promise 5: an exploration that is interrupted tells what it has seen.
func TestAnInterruptedExplorationTellsWhatItHasSeen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "many.yaml")
	require.NoError(t, os.WriteFile(path, []byte(many), 0o666))
	ctx, stop := context.WithCancel(t.Context())
	explored, err := campaign.Explore(ctx, campaign.Config{Start: start("real"), Tick: func(all []campaign.Underway) {
		if len(all) > 0 && all[0].Schedules > 1 {
			stop()
		}
	}}, []campaign.Exploration{{Scenario: "many", File: path, Profile: "reviewed", NoReduction: true}})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, explored, 1)
	r := explored[0].Result
	require.Equal(t, check.Undecided, r.Verdict)
	require.False(t, r.Complete)
	require.Positive(t, r.Schedules)
	require.NotEmpty(t, r.Outcomes)
	require.Equal(t, "it was ended early", r.Checks[len(r.Checks)-1].Message)
}
