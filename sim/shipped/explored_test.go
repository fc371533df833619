package shipped_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/wlm"
)

// explored explores a file under a profile; the file must hold in every order.
func explored(t *testing.T, path, profile string, set ...string) *explore.Result {
	t.Helper()
	r, err := explore.Run(read(t, path, set...), explore.Options{Path: "scenarios/" + path, Profile: profile, Set: set})
	require.NoError(t, err)
	return r
}

func requireHeldInEveryOrder(t *testing.T, r *explore.Result) {
	t.Helper()
	for _, c := range r.Checks {
		if c.Verdict != check.Held {
			t.Errorf("%s:%d: %s: %s %s; schedule %s", r.File, c.Line, c.Verdict, c.Name, c.Message, c.Schedule)
		}
	}
	require.Equal(t, check.Held, r.Verdict, r.Repeat)
	require.True(t, r.Complete, r.Repeat)
}

// explorations lists the files that explore one node, which can be done
// completely.
func explorations(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, path := range files(t) {
		if f := read(t, path); f.Explore != nil && f.Explore.Node != "" {
			found = append(found, path)
		}
	}
	require.GreaterOrEqual(t, len(found), 26)
	return found
}

// Every file of a race or a flaw holds in every order under every profile; its
// own is seen to elsewhere, in package explore and with the regressions.
func TestEveryExplorationHoldsUnderEveryProfile(t *testing.T) {
	for _, path := range explorations(t) {
		f := read(t, path)
		for _, profile := range wlm.Profiles() {
			if profile == f.Filled().Profile {
				continue
			}
			t.Run(path+"/"+profile, func(t *testing.T) {
				t.Parallel()
				requireHeldInEveryOrder(t, explored(t, path, profile))
			})
		}
	}
}

var numbers = []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}

var namedOutcomes = regexp.MustCompile(`(?i)\b(` + strings.Join(numbers, "|") + `) outcomes?\b`)

// outcomesOf reads the number of outcomes that a text names; negative: none.
func outcomesOf(about string) int {
	m := namedOutcomes.FindStringSubmatch(about)
	if m == nil {
		return -1
	}
	return slices.Index(numbers, strings.ToLower(m[1]))
}

// What a race is about names as many outcomes as the race has, and OpenSearch's
// part in it. Where a flaw is planted that makes another one possible, the
// number is wrong.
func TestARaceNamesTheNumberOfItsOutcomes(t *testing.T) {
	for _, path := range explorations(t) {
		if !strings.HasPrefix(path, "explore/") {
			continue
		}
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			about := read(t, path).About
			require.Len(t, explored(t, path, "").Outcomes, outcomesOf(about))
			require.Contains(t, about, "OpenSearch")
		})
	}
	const lag = "explore/the-registration-lag.yaml"
	flawed := explored(t, lag, "", "switches.missing_counters=default_group")
	require.NotEqual(t, outcomesOf(read(t, lag).About), len(flawed.Outcomes))
	require.Negative(t, outcomesOf("it is admitted or refused"))
}

// What a file says of a profile is needed: without it, the file breaks.
func TestWhatAnExplorationSaysOfAProfileIsNeeded(t *testing.T) {
	for _, path := range explorations(t) {
		f := read(t, path)
		for profile, says := range f.Under {
			t.Run(path+"/"+profile, func(t *testing.T) {
				t.Parallel()
				f := read(t, path)
				f.Under = nil // what it requires and forbids
				if len(says.Breaks) > 0 {
					says.Breaks = nil
					f.Under = map[string]scenario.Under{profile: says}
				}
				r, err := explore.Run(f, explore.Options{Profile: profile, Schedules: 300})
				require.NoError(t, err)
				require.Equal(t, check.Broken, r.Verdict, "nothing differs that the file would have to name")
			})
		}
	}
}

// What comes together is one version: the applier takes four turns for it, and
// two more where the settings come first in a version of their own.
func TestChangesThatComeTogetherAreOneVersion(t *testing.T) {
	const path = "explore/settings-and-a-group-in-one-version.yaml"
	turns := func(set ...string) int {
		n, s := 0, explored(t, path, "", set...).Outcomes[0].Schedule
		schedule, err := explore.ParseSchedule(s)
		require.NoError(t, err)
		for _, lane := range schedule {
			if lane == "applier" {
				n++
			}
		}
		return n
	}
	require.Equal(t, []int{4, 6}, []int{turns(), turns("explore.together=[]")})
}

// The example of how to write an exploration is one that holds, and whose orders
// lead to what it forbids where a flaw is planted.
func TestTheReadmesExampleOfAnExploration(t *testing.T) {
	readme, err := os.ReadFile(folder + "/README.md")
	require.NoError(t, err)
	_, example, _ := strings.Cut(string(readme), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	for flaw, want := range map[string]check.Verdict{"acquire=exact": check.Held, "acquire=rollback": check.Broken} {
		f, err := scenario.Parse("example.yaml", []byte(example), "switches."+flaw)
		require.NoError(t, err)
		r, err := explore.Run(f, explore.Options{})
		require.NoError(t, err)
		require.True(t, r.Complete)
		require.Equal(t, want, r.Verdict, flaw)
	}
}

// The README shows the flaw of the registration lag as it is found: each line of
// its two extracts is one of the answer.
func TestTheReadmeShowsTheRegistrationLag(t *testing.T) {
	const path = "explore/the-registration-lag.yaml"
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(readme), "## Every interleaving")
	section, _, _ = strings.Cut(section, "\n## ")
	var answer strings.Builder
	r := explored(t, path, "", "switches.missing_counters=default_group")
	require.NoError(t, explore.Write(&answer, "text", []*explore.Result{r}, func(string, int) string { return "" }))
	lines := strings.Split(answer.String(), "\n")
	extracts := strings.Split(section, "```text\n")[1:]
	require.Len(t, extracts, 2)
	for _, extract := range extracts {
		extract, _, _ = strings.Cut(extract, "```")
		for line := range strings.Lines(extract) {
			require.Contains(t, lines, strings.TrimRight(line, "\n"))
		}
	}
	for _, o := range r.Outcomes {
		require.Contains(t, extracts[0], o.Schedule)
	}
	require.Contains(t, section, "--schedule '"+r.Outcomes[3].Schedule+"'")
}
