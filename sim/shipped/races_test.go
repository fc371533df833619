package shipped_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// racy are faults of a node that the file of a race must find, where no switch
// plants one.
var racy = map[string]edit{
	// Who went away takes the permit along.
	"a-cancel-meets-the-last-answer": {"coordinator/search.go", "\ts.permit.Release()\n", "\tif !s.departed {\n\t\ts.permit.Release()\n\t}\n"},
	// What fails ends twice.
	"a-fan-out-that-fails-ends-once": {"coordinator/search.go", "\ts.c.outcomes.count(s.outcomeGroup(), o, uncounted)\n",
		"\tfor range map[outcome]int{failed: 2, completed: 1, throttled: 1, wasCancelled: 1}[o] {\n\t\ts.c.outcomes.count(s.outcomeGroup(), o, uncounted)\n\t}\n"},
	// A permit is given back to a group, and not to where it came from.
	"a-permit-returns-to-a-group-that-is-gone": {"coordinator/search.go", "\ts.permit.Release()\n",
		"\tif s.c.config.States.State().Group(s.group) != nil {\n\t\ts.permit.Release()\n\t}\n"},
	// The bucket is found full one permit too late.
	"a-limit-shrinks-while-a-search-is-admitted": {"wlm/permits.go", "held >= a.limit", "held > a.limit"},
	"a-rollback-refuses-everybody":               {"wlm/permits.go", "held+int(b.tried) > a.limit", "held+int(b.tried) > a.limit+1"},
	// A nested search is led for nobody.
	"a-nested-search-has-its-principal": {"coordinator/search.go", "return t.AdmitNested(ctx, s.state", "return t.AdmitNested(context.Background(), s.state"},
	// With the next version in the queue, the listeners do not hear of this one.
	"a-change-overtakes-a-slow-listener": {"applier/applier.go", "\ta.at(probe.Event{Step: probe.ApplierPublished}, next)\n",
		"\ta.at(probe.Event{Step: probe.ApplierPublished}, next)\n\tif len(a.queue) > 0 {\n\t\ta.wakeUpTo(next.Version())\n\t\treturn\n\t}\n"},
	// A change is answered before it has any effect.
	"settings-and-a-group-in-one-node": {"applier/applier.go", "\tprev := a.state.Load()\n\tfor", "\tprev := a.state.Load()\n\ta.wakeUpTo(next.Version())\n\tfor"},
	// The state is readable before the mode has changed.
	"settings-and-a-group-in-one-version":               lateMode,
	"management-goes-off-between-reading-and-admission": lateMode,
}

var lateMode = edit{"applier/applier.go", "\tprev := a.state.Load()\n\tfor", "\tprev := a.state.Load()\n\ta.state.Store(next)\n\tfor"}

// others are the races whose faults switches plant, which package explore tests,
// and one without a fault: two updates of one group are put in order by the row
// of commands, which the explorer of one node hands over itself.
var others = []string{
	"a-count-during-a-change-of-the-map", "a-principal-stays-in-its-context", "exact-permits-refuse-nobody-needlessly",
	"names-with-a-comma-stay-apart", "stats-are-read-while-counters-appear", "the-registration-lag", "two-updates-of-one-group",
}

// A race without a fault that it is known to find is noticed.
func TestEveryRaceHasAFault(t *testing.T) {
	var races []string
	for _, path := range files(t) {
		if race, ok := strings.CutPrefix(path, "explore/"); ok {
			races = append(races, strings.TrimSuffix(race, ".yaml"))
		}
	}
	require.ElementsMatch(t, races, slices.AppendSeq(slices.Clone(others), maps.Keys(racy)))
}

// ofClusters is the same of a whole cluster, where neither a switch nor a change of
// the file plants a fault.
var ofClusters = map[string]edit{
	// A command whose leader was lost is sent again.
	"leadership-moves-during-an-update": {"sim/node/propose.go", "\tcase cluster.KindOf(err) == notLeadingKind, errors.Is(err, gossip.ErrUnknownMember)",
		"\tcase errors.Is(lost, errLeaderLost), cluster.KindOf(err) == notLeadingKind, errors.Is(err, gossip.ErrUnknownMember)"},
}

// Each race finds its fault where it is built into the node, in some order; of a
// whole cluster in some of those that are drawn. In short runs the edits only have
// to fit.
func TestRacesFindFaultsThatAreBuiltIn(t *testing.T) {
	for race, fault := range racy {
		t.Run(race, func(t *testing.T) { requireFound(t, fault, 1, "TestTheFilesHoldInEveryOrder", race) })
	}
	for race, fault := range ofClusters {
		t.Run(race, func(t *testing.T) { requireFound(t, fault, 10, "TestWholeClustersKeepTheirPromises", race) })
	}
}

// requireFound runs a test of package explore on the file of a race, some times
// over, with a fault built into the node.
func requireFound(t *testing.T, fault edit, times int, test, race string) {
	t.Helper()
	overlay := fault.overlay(t, t.TempDir())
	if os.Getenv("WLMSIM_SOAK") == "" {
		return
	}
	command := exec.CommandContext(t.Context(), "go", "test", "-vet=off", fmt.Sprint("-count=", times), "-v", "-overlay", overlay, "-run", "^"+test+"$/^"+race+"$", "../explore")
	command.Env = append(os.Environ(), "GOTOOLCHAIN=local", "WLMSIM_SOAK=")
	out, err := command.CombinedOutput()
	require.Error(t, err, "%s", out)
	require.Regexp(t, "--- FAIL: "+test+"/"+race+"[ /]", string(out))
}
