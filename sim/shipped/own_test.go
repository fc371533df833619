package shipped_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// edit puts a fault of our own back into the source that there is now.
type edit struct{ source, fixed, faulty string }

// ours are the faults of the files whose fix is a commit.
var ours = map[string]edit{
	"an-answer-behind-a-one-way-cut-is-dropped": {"cluster/gossip/serve.go", "\t\terr = to.out.keepLate(it, g.cfg.Bounds)\n", ""},
	"a-request-is-lost-with-its-stream":         {"cluster/gossip/gossip.go", "\t\t\tg.reply(p, frame{kind: kindOwed, id: id})\n", "\t\t\t_ = id\n"},
	"the-first-refresh-of-the-rules-comes-late": {"sim/node/node.go", "\tselect {\n\tcase <-n.caughtUp:\n\tcase <-n.ctx.Done():\n\t\treturn\n\t}\n\tfor n.sleep(n.State().RuleRefresh())", "\tfor n.sleep(n.State().RuleRefresh())"},
}

// overlay writes the source with the fault into a folder, and returns the file
// that makes go build with it.
func (e edit) overlay(t *testing.T, dir string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../..", e.source))
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), e.fixed), "%s does not have the text of the fix once:\n%s", e.source, e.fixed)
	faulty := filepath.Join(dir, "faulty.go")
	require.NoError(t, os.WriteFile(faulty, []byte(strings.Replace(string(text), e.fixed, e.faulty, 1)), 0o600))
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{path: faulty}})
	require.NoError(t, err)
	overlay := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, list, 0o600))
	return overlay
}

// Each fault of our own is found again where it is put back: its file breaks,
// and those of the other ones hold. The files are run until one breaks, twenty
// times at most: a member of whom nothing is heard is given up before the fault
// shows in one run of six. In short runs the edits only have to fit.
func TestFaultsOfOurOwnAreFoundAgain(t *testing.T) {
	readme, does := corpus(t)
	rows, _ := regressions(readme, does)
	own := 0
	for _, row := range rows {
		if row.planted() != "" {
			continue
		}
		own++
		require.Contains(t, ours, row.file)
		overlay := ours[row.file].overlay(t, t.TempDir())
		if os.Getenv("WLMSIM_SOAK") == "" {
			continue
		}
		pattern := "^TestEveryFileHolds$/^regression$/^(" + strings.Join(slices.Sorted(maps.Keys(ours)), "|") + ")[.]yaml$"
		command := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=20", "-failfast", "-v", "-overlay", overlay, "-run", pattern, ".")
		command.Env = append(os.Environ(), "GOTOOLCHAIN=local", "WLMSIM_SOAK=")
		out, err := command.CombinedOutput()
		require.Error(t, err, "%s\n%s", row.file, out)
		for file := range ours {
			failed := strings.Contains(string(out), "--- FAIL: TestEveryFileHolds/regression/"+file+".yaml/")
			require.Equal(t, file == row.file, failed, "%s with the fault of %s\n%s", file, row.file, out)
		}
	}
	require.Len(t, ours, own)
}

// git asks the history of the source.
func git(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", args...).Output()
	return strings.TrimSpace(string(out)), err
}

// wholeHistory says whether the history is there: it is not shallow, and it
// knows some commit of the table. A copy of the source without it, with the last
// commits of it alone, or in a history of its own, can be tested all the same.
func wholeHistory(t *testing.T, rows []regression) bool {
	t.Helper()
	shallow, err := git(t, "rev-parse", "--is-shallow-repository")
	return err == nil && shallow == "false" && slices.ContainsFunc(rows, func(r regression) bool {
		_, err := git(t, "cat-file", "-e", r.seen+"^{commit}")
		return err == nil
	})
}

// misdated says what is wrong with the commits of a row, by a function that says
// whether one commit is a forebear of another one; "": nothing.
func misdated(r *regression, before func(a, b string) bool) string {
	switch own := r.planted() == ""; {
	case !before(r.seen, "HEAD"):
		return r.seen + " is not in the history"
	case own && !before(r.fix, "HEAD"):
		return r.fix + " is not in the history"
	case own && (r.seen == r.fix || !before(r.seen, r.fix)):
		return "last seen at " + r.seen + ", which is not before the fix " + r.fix
	}
	return ""
}

// The commits of the table are in the history, a fault was last seen before its
// fix, and one that a switch plants at some commit. Where there is no whole
// history the form of the commits is all that can be tested, which
// TestTheTableOfRegressionsAgreesWithTheFiles does.
func TestTheCommitsOfTheTableAreInOrder(t *testing.T) {
	readme, does := corpus(t)
	rows, faults := regressions(readme, does)
	require.Empty(t, faults)
	if !wholeHistory(t, rows) {
		t.Log("the history is not whole: the commits of the table have the form of commits, and no more is known of them")
		return
	}
	before := func(a, b string) bool {
		_, err := git(t, "merge-base", "--is-ancestor", a, b)
		return err == nil
	}
	for i := range rows {
		require.Empty(t, misdated(&rows[i], before), rows[i].file)
	}
}

func TestCommitsInAnotherOrderAreNoticed(t *testing.T) {
	order := []string{"aaaaaaa", "bbbbbbb", "HEAD"}
	index := map[string]int{}
	for i, c := range order {
		index[c] = i + 1
	}
	before := func(a, b string) bool { return index[a] > 0 && index[a] <= index[b] }
	for _, row := range []struct {
		regression
		want string
	}{
		{regression{fix: "bbbbbbb", seen: "aaaaaaa"}, ""},
		{regression{fix: "`acquire=exact`", seen: "bbbbbbb"}, ""},
		{regression{fix: "aaaaaaa", seen: "bbbbbbb"}, "last seen at bbbbbbb, which is not before the fix aaaaaaa"},
		{regression{fix: "aaaaaaa", seen: "aaaaaaa"}, "last seen at aaaaaaa, which is not before the fix aaaaaaa"},
		{regression{fix: "ccccccc", seen: "aaaaaaa"}, "ccccccc is not in the history"},
		{regression{fix: "`acquire=exact`", seen: "ccccccc"}, "ccccccc is not in the history"},
	} {
		require.Equal(t, row.want, misdated(&row.regression, before))
	}
}
