package shipped_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/explore"
	"github.com/wlmsim/wlmsim/sim/scenario"
	"github.com/wlmsim/wlmsim/sim/world"
	"github.com/wlmsim/wlmsim/wlm"
)

// regression is a row of the table in scenarios/README.md.
type regression struct {
	file, symptom, cause, fix, command, seen string
}

var (
	rowOfRegression = regexp.MustCompile(`(?m)^\| \[([a-z-]+)\]\(regression/([a-z-]+)\.yaml\) \|(.*)\|$`)
	fixBySwitch     = regexp.MustCompile("^`([a-z_]+=[a-z_]+)`$")
	commit          = regexp.MustCompile(`^[0-9a-f]{7}$`)
)

// planted returns the assignment that takes a flaw out; "": it was a fault of
// our own, which a commit took out.
func (r *regression) planted() string {
	if m := fixBySwitch.FindStringSubmatch(r.fix); m != nil {
		return "switches." + m[1]
	}
	return ""
}

// regressions reads the table, and says what is wrong with it, given the files
// that there are and what each of them does: "run" or "explore".
func regressions(readme string, does map[string]string) (rows []regression, faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	known := map[string]bool{}
	for _, m := range rowOfRegression.FindAllStringSubmatch(readme, -1) {
		cells := strings.Split(m[3], "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) != 5 || slices.Contains(cells, "") {
			fault("%s: a row has a file, a symptom, a cause, a fix, a command and a commit", m[1])
			continue
		}
		r := regression{m[2], cells[0], cells[1], cells[2], cells[3], cells[4]}
		if m[1] != r.file || known[r.file] {
			fault("%s: the row of %s, which has one or another name", m[1], r.file)
		}
		known[r.file] = true
		if r.planted() == "" && !commit.MatchString(r.fix) {
			fault("%s: the fix %q is neither a switch nor a commit", r.file, r.fix)
		}
		if !commit.MatchString(r.seen) {
			fault("%s: %q is no commit", r.file, r.seen)
		}
		switch want := fmt.Sprintf("`wlmsim %s scenarios/regression/%s.yaml`", does[r.file], r.file); {
		case does[r.file] == "":
			fault("%s: there is no such file", r.file)
		case r.command != want:
			fault("%s: the command is %s and not %s", r.file, want, r.command)
		}
		rows = append(rows, r)
	}
	for file := range does {
		if !known[file] {
			fault("%s: the file has no row", file)
		}
	}
	slices.Sort(faults)
	return rows, faults
}

// corpus returns the text of the table and what each file does.
func corpus(t *testing.T) (readme string, does map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "README.md"))
	require.NoError(t, err)
	does = map[string]string{}
	for _, path := range files(t) {
		if name, ok := strings.CutPrefix(path, "regression/"); ok {
			name = strings.TrimSuffix(name, ".yaml")
			does[name] = "explore"
			if runs(read(t, path)) {
				does[name] = "run"
			}
		}
	}
	require.GreaterOrEqual(t, len(does), 14)
	return string(text), does
}

func TestTheTableOfRegressionsAgreesWithTheFiles(t *testing.T) {
	readme, does := corpus(t)
	rows, faults := regressions(readme, does)
	require.Empty(t, faults)
	require.Len(t, rows, len(does))
}

// The comparison of the table with the files notices each way to differ.
func TestAWrongTableOfRegressionsIsNoticed(t *testing.T) {
	readme, does := corpus(t)
	const file = "a-comma-makes-two-users-one"
	row := rowOfRegression.FindString(readme[strings.Index(readme, "| ["+file+"]"):])
	require.NotEmpty(t, row)
	for _, flaw := range []struct{ name, old, written, want string }{
		{"a row is missing", row + "\n", "", file + ": the file has no row"},
		{"a row is there twice", row, row + "\n" + row, file + ": the row of " + file + ", which has one or another name"},
		{"a row of a file that is gone", row, strings.ReplaceAll(row, file, "gone"), "gone: there is no such file"},
		{"another file's link", "[" + file + "]", "[x]", "x: the row of " + file},
		{"another command", "`wlmsim explore scenarios/regression/" + file, "`wlmsim run scenarios/regression/" + file, file + ": the command is"},
		{"no switch", "`principal_join=escaped` | `wlmsim explore scenarios/regression/" + file, "escaping | `wlmsim explore scenarios/regression/" + file, file + `: the fix "escaping" is neither`},
		{"no commit", row, regexp.MustCompile(`[0-9a-f]{7} \|$`).ReplaceAllString(row, "yesterday |"), file + `: "yesterday" is no commit`},
		{"an empty cell", row, regexp.MustCompile(`yaml\) \| [^|]* \|`).ReplaceAllString(row, "yaml) | |"), file + ": a row has a file, a symptom"},
	} {
		wrong := strings.Replace(readme, flaw.old, flaw.written, 1)
		require.NotEqual(t, readme, wrong, flaw.name)
		_, faults := regressions(wrong, does)
		require.Contains(t, strings.Join(faults, "\n"), flaw.want, flaw.name)
	}
}

// verdicts runs or explores a file and returns what did not hold, by name, but
// for what the file says must break, and the overall verdict. An exploration has
// to be complete.
func verdicts(t *testing.T, file string, set ...string) (map[string]string, check.Verdict) {
	t.Helper()
	path := "regression/" + file + ".yaml"
	var verdict check.Verdict
	var all []check.Result
	if runs(read(t, path)) {
		r, err := world.Run(read(t, path, set...), world.Options{Path: "scenarios/" + path, Set: set})
		require.NoError(t, err)
		all, verdict = r.Checks, r.Verdict
	} else {
		r, err := explore.Run(read(t, path, set...), explore.Options{Path: "scenarios/" + path, Set: set})
		require.NoError(t, err)
		require.True(t, r.Complete)
		for _, c := range r.Checks {
			all = append(all, c.Result)
		}
		verdict = r.Verdict
	}
	wrong := map[string]string{}
	for _, c := range all {
		broken := c.Verdict != check.Held && !strings.HasPrefix(c.Message, "as the file says")
		if broken || strings.HasPrefix(c.Message, "the file says that this breaks") {
			wrong[c.Name] = c.Message
		}
	}
	return wrong, verdict
}

// Each flaw that a switch plants is still found; with the switch at what fixes
// it the file finds it no more, and no promise breaks. Where the fault was our
// own, the file holds.
func TestRegressionsAreFoundAndFixesHold(t *testing.T) {
	readme, does := corpus(t)
	rows, _ := regressions(readme, does)
	for _, row := range rows {
		t.Run(row.file, func(t *testing.T) {
			t.Parallel()
			wrong, verdict := verdicts(t, row.file)
			require.Empty(t, wrong)
			require.Equal(t, check.Held, verdict)
			f := read(t, "regression/"+row.file+".yaml")
			if row.planted() == "" {
				require.Empty(t, f.Switches, "a switch that plants the fault belongs into the column of the fix")
				require.Empty(t, f.Breaks)
				return
			}
			wrong, verdict = verdicts(t, row.file, row.planted())
			require.Equal(t, check.Broken, verdict, "the file does not notice that the flaw is gone")
			for _, promise := range f.Breaks {
				require.Contains(t, wrong[string(promise)], "the file says that this breaks", "the flaw is there with %s", row.planted())
			}
			for _, m := range scenario.Promises() {
				if !slices.Contains(f.Breaks, m.Promise) {
					require.NotContains(t, wrong, string(m.Promise), "with %s", row.planted())
				}
			}
		})
	}
}

// difference is a switch and a value that some profile has, and what reviewed
// has in its place.
type difference struct{ name, value, reviewed string }

// differences lists those of all profiles.
func differences(t *testing.T) (all []difference) {
	t.Helper()
	reviewed := profile(t, wlm.ProfileReviewed)
	for _, p := range wlm.Profiles() {
		s := profile(t, p)
		for _, name := range s.Names() {
			d := difference{name, s.Get(name), reviewed.Get(name)}
			if d.value != d.reviewed && !slices.Contains(all, d) {
				all = append(all, d)
			}
		}
	}
	return all
}

// planted says which switch of a file is planted, and what takes it out.
type planted struct{ name, value, fix string }

// plantings lists them by the rows of the table.
func plantings(t *testing.T, rows []regression) (all []planted) {
	t.Helper()
	for _, r := range rows {
		if r.planted() == "" {
			continue
		}
		name, fix, _ := strings.Cut(strings.TrimPrefix(r.planted(), "switches."), "=")
		all = append(all, planted{name, read(t, "regression/"+r.file+".yaml").Switches[name], fix})
	}
	return all
}

var rowOfForm = regexp.MustCompile("(?m)^\\| `([a-z_]+=[a-z_]+)` \\| [^|]{40,} \\|$")

// forms reads the switches that are no faults.
func forms(readme string) (all []string) {
	for _, m := range rowOfForm.FindAllStringSubmatch(readme, -1) {
		all = append(all, m[1])
	}
	return all
}

// uncovered lists the differences that no file plants, either side of them, and
// that are no forms; and the forms that are no differences.
func uncovered(all []difference, plants []planted, forms []string) (faults []string) {
	known := map[string]bool{}
	for _, d := range all {
		known[d.name+"="+d.value] = true
		there := slices.Contains(plants, planted{d.name, d.value, d.reviewed}) || slices.Contains(plants, planted{d.name, d.reviewed, d.value})
		if form := slices.Contains(forms, d.name+"="+d.value); !there && !form {
			faults = append(faults, fmt.Sprintf("%s=%s has no regression", d.name, d.value))
		} else if there && form {
			faults = append(faults, fmt.Sprintf("%s=%s is planted, so it is no form", d.name, d.value))
		}
	}
	for _, form := range forms {
		if !known[form] {
			faults = append(faults, fmt.Sprintf("%s is a form that no profile has", form))
		}
	}
	return faults
}

// Every value of a switch in which a profile differs from the reviewed one is
// planted by some file, alone or with what it needs, or is what takes a flaw of
// the reviewed one out; or the README says why it is a form.
func TestEveryDifferenceOfAProfileHasARegression(t *testing.T) {
	readme, does := corpus(t)
	rows, _ := regressions(readme, does)
	all, plants := differences(t), plantings(t, rows)
	require.Len(t, all, 15)
	require.Empty(t, uncovered(all, plants, forms(readme)))
}

// A difference without a file is noticed, whatever it lacks.
func TestADifferenceWithoutARegressionIsNoticed(t *testing.T) {
	readme, does := corpus(t)
	rows, _ := regressions(readme, does)
	all, plants, named := differences(t), plantings(t, rows), forms(readme)
	for _, p := range plants {
		fewer := slices.DeleteFunc(slices.Clone(plants), func(q planted) bool { return q.name == p.name && q.value == p.value && q.fix == p.fix })
		require.NotEmpty(t, uncovered(all, fewer, named), "without %v", p)
	}
	more := append(slices.Clone(all), difference{"counters", "sharded", "safe"})
	require.Equal(t, []string{"counters=sharded has no regression"}, uncovered(more, plants, named))
	require.Equal(t, []string{"dimension_key=by has no regression"}, uncovered(all, plants, nil))
	require.Equal(t, []string{"scroll=charged is planted, so it is no form", "gone=x is a form that no profile has"},
		uncovered(all, plants, append(slices.Clone(named), "scroll=charged", "gone=x")))
	require.Empty(t, forms("| `dimension_key=by` | |\n| `dimension_key=by` | so |\n"), "a form has a reason")
}

func profile(t *testing.T, name string) wlm.Switches {
	t.Helper()
	s, err := wlm.Profile(name)
	require.NoError(t, err)
	return s
}
