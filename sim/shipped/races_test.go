package shipped_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// racy are faults of a node that the file of a race must find, where no switch
// plants one. In the faulty text, FAULT says whether this one is to be there: all
// of them are built into one program.
var racy = map[string]edit{
	// Who went away takes the permit along.
	"a-cancel-meets-the-last-answer": {"coordinator/search.go", "\ts.permit.Release()\n", "\tif !FAULT || !s.departed {\n\t\ts.permit.Release()\n\t}\n"},
	// What fails ends twice.
	"a-fan-out-that-fails-ends-once": {"coordinator/search.go", "\ts.c.outcomes.count(s.outcomeGroup(), o, uncounted)\n",
		"\ts.c.outcomes.count(s.outcomeGroup(), o, uncounted)\n\tif FAULT && o == failed {\n\t\ts.c.outcomes.count(s.outcomeGroup(), o, uncounted)\n\t}\n"},
	// A permit is given back to a group, and not to where it came from.
	"a-permit-returns-to-a-group-that-is-gone": {"coordinator/search.go", "\ts.permit.Release()\n",
		"\tif !FAULT || s.c.config.States.State().Group(s.group) != nil {\n\t\ts.permit.Release()\n\t}\n"},
	// The bucket is found full one permit too late.
	"a-limit-shrinks-while-a-search-is-admitted": {"wlm/permits.go", "held >= a.limit", "held > a.limit || held == a.limit && !FAULT"},
	"a-rollback-refuses-everybody":               {"wlm/permits.go", "held+int(b.tried) > a.limit", "held+int(b.tried) > a.limit+1 || held+int(b.tried) > a.limit && !FAULT"},
	// A nested search is led for nobody.
	"a-nested-search-has-its-principal": {"coordinator/search.go", "\t\treturn t.AdmitNested(ctx, s.state",
		"\t\tif FAULT {\n\t\t\tctx = context.Background()\n\t\t}\n\t\treturn t.AdmitNested(ctx, s.state"},
	// With the next version in the queue, the listeners do not hear of this one.
	"a-change-overtakes-a-slow-listener": {"applier/applier.go", "\ta.at(probe.Event{Step: probe.ApplierPublished}, next)\n",
		"\ta.at(probe.Event{Step: probe.ApplierPublished}, next)\n\tif FAULT && len(a.queue) > 0 {\n\t\ta.wakeUpTo(next.Version())\n\t\treturn\n\t}\n"},
	// A change is answered before it has any effect.
	"settings-and-a-group-in-one-node": {"applier/applier.go", "func (a *Applier) apply(next *cluster.State) {\n",
		"func (a *Applier) apply(next *cluster.State) {\n\tif FAULT {\n\t\ta.wakeUpTo(next.Version())\n\t}\n"},
	// The state is readable before the mode has changed.
	"settings-and-a-group-in-one-version":               lateMode,
	"management-goes-off-between-reading-and-admission": lateMode,
	// The first of two changes answers both.
	"two-updates-of-one-group": {"applier/applier.go", "\ta.wakeUpTo(next.Version())\n\ta.at(",
		"\tif FAULT {\n\t\ta.wakeUpTo(a.last)\n\t}\n\ta.wakeUpTo(next.Version())\n\ta.at("},
}

var lateMode = edit{"applier/applier.go", "\tprev := a.state.Load()\n", "\tprev := a.state.Load()\n\tif FAULT {\n\t\ta.state.Store(next)\n\t}\n"}

// others are the races whose faults switches plant, which package explore tests.
var others = []string{
	"a-count-during-a-change-of-the-map", "a-principal-stays-in-its-context", "exact-permits-refuse-nobody-needlessly",
	"names-with-a-comma-stay-apart", "stats-are-read-while-counters-appear", "the-registration-lag",
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
		"\tcase FAULT && errors.Is(lost, errLeaderLost), cluster.KindOf(err) == notLeadingKind, errors.Is(err, gossip.ErrUnknownMember)"},
	// The leader completes an update from the group that it has applied, and so
	// undoes what is under way.
	"two-updates-through-two-nodes": {"cluster/replica/propose.go", "\tdata, err := cluster.EncodeCommand(c)\n", `	if u, ok := c.(*cluster.UpdateGroup); ok && FAULT {
		whole, g := *u, r.State().GroupNamed(u.Name)
		if whole.ResourceLimits == nil {
			whole.ResourceLimits = g.ResourceLimits
		}
		if !whole.Throttling.NodeLimit.Given {
			whole.Throttling.NodeLimit = cluster.Optional[int64]{Given: true, Value: g.Throttling.NodeLimit}
		}
		c = &whole
	}
	data, err := cluster.EncodeCommand(c)
`},
}

// Each race finds its fault where it is built into the node, in some order; of a
// whole cluster in some of those that are drawn: at least one in five breaks, and
// that none of a hundred does has a chance of one in billions. Without a fault the
// same program finds none. In short runs the faults only have to fit.
func TestRacesFindFaultsThatAreBuiltIn(t *testing.T) {
	overlay := overlayOf(t, t.TempDir(), racy, ofClusters)
	if os.Getenv("WLMSIM_SOAK") == "" {
		return
	}
	program := filepath.Join(t.TempDir(), "wlmsim")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", program, "../../cmd/wlmsim").CombinedOutput()
	require.NoError(t, err, "%s", out)
	var files []string
	for race := range racy {
		files = append(files, "explore/"+race)
	}
	for race := range ofClusters {
		files = append(files, "clusters/"+race)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			said, broken := explorationWith(t, program, filepath.Base(file), file)
			require.True(t, broken, said)
			said, broken = explorationWith(t, program, "", file)
			require.False(t, broken, said)
		})
	}
}

// explorationWith explores a file with a fault, and says whether anything broke.
func explorationWith(t *testing.T, program, fault, file string) (said string, broken bool) {
	t.Helper()
	args := []string{"explore", filepath.Join(folder, file+".yaml")}
	if strings.HasPrefix(file, "clusters/") {
		args = append(args, "--schedules", "100")
	}
	command := exec.CommandContext(t.Context(), program, args...)
	command.Env = append(os.Environ(), faultVariable+"="+fault)
	out, err := command.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); !ended {
		require.NoError(t, err)
	}
	return string(out), command.ProcessState.ExitCode() == 1
}

// faultVariable is the environment's name of the fault that is to be there.
const faultVariable = "WLMSIM_PLANTED_FAULT"

// overlayOf writes the sources with all faults into a folder, each where the
// environment asks for it, and returns the file that makes go build with them.
func overlayOf(t *testing.T, dir string, all ...map[string]edit) string {
	t.Helper()
	texts := map[string]string{} // by source
	for _, faults := range all {
		for _, race := range slices.Sorted(maps.Keys(faults)) {
			e := faults[race]
			if texts[e.source] == "" {
				text, err := os.ReadFile(filepath.Join("../..", e.source))
				require.NoError(t, err)
				texts[e.source] = string(text)
				parsed, err := parser.ParseFile(token.NewFileSet(), e.source, text, parser.PackageClauseOnly)
				require.NoError(t, err)
				texts[filepath.Join(filepath.Dir(e.source), "planted_fault.go")] = fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar plantedFault = os.Getenv(%q)\n", parsed.Name, faultVariable)
			}
			require.Equal(t, 1, strings.Count(texts[e.source], e.fixed), "%s does not have the text without the fault once:\n%s", e.source, e.fixed)
			faulty := strings.ReplaceAll(e.faulty, "FAULT", fmt.Sprintf("(plantedFault == %q)", race))
			texts[e.source] = strings.Replace(texts[e.source], e.fixed, faulty, 1)
		}
	}
	replace := map[string]string{}
	for source, text := range texts {
		path, err := filepath.Abs(filepath.Join("../..", source))
		require.NoError(t, err)
		_, err = parser.ParseFile(token.NewFileSet(), source, text, parser.SkipObjectResolution)
		require.NoError(t, err, source)
		replace[path] = filepath.Join(dir, strings.ReplaceAll(source, "/", "-"))
		require.NoError(t, os.WriteFile(replace[path], []byte(text), 0o600))
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	overlay := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, list, 0o600))
	return overlay
}
