package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jstemmer/go-junit-report/v2/junit"
	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/check"
	"github.com/wlmsim/wlmsim/sim/report"
	"github.com/wlmsim/wlmsim/sim/world"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// sample are three runs: one that held, with a note; one that broke; one that
// hung, with text that would break out of every format.
func sample() []world.Result {
	return []world.Result{
		{
			Scenario: "Each user has a bucket", File: "scenarios/throttle/username.yaml", Seed: 7, Profile: "reviewed", Verdict: check.Held,
			VirtualSeconds: 62.004, WallSeconds: 0.2134, TraceHash: "00000000000000ff",
			Searches:  world.Searches{Sent: 1200, Completed: 1100, Throttled: 90, Failed: 7, Cancelled: 3},
			Groups:    map[string]world.Counters{"analytics": {Completions: 6600, Throttled: 90}, "DEFAULT_WORKLOAD_GROUP": {}},
			LatencyMS: world.LatencyMS{P50: 24.5, P90: 80, P99: 131.25, Max: 210},
			Checks: []world.Check{
				{Name: "permits_bounded", Verdict: check.Held},
				{Name: "principal_stays", Verdict: check.Broken, Message: "as the file says: a canary was seen"},
				{Name: "twice", Verdict: check.Held, Message: "done twice, it went two ways\n  first\n  other\n"},
			},
			Repeat: "wlmsim run scenarios/throttle/username.yaml --seed 7 --profile reviewed --twice",
		},
		{
			Scenario: "A stale counter", File: "scenarios/lag/stale.yaml", Seed: 18446744073709551615, Profile: "submitted", Verdict: check.Broken,
			VirtualSeconds: 20, WallSeconds: 1.5, TraceHash: "0000000000000100", Searches: world.Searches{Sent: 1, Completed: 1},
			Groups: map[string]world.Counters{},
			Checks: []world.Check{
				{Name: "permits_bounded", Verdict: check.Held},
				{Name: "rejection_attribution", Verdict: check.Broken, Message: "a rejection was counted on another group than its own: DEFAULT_WORKLOAD_GROUP on d2"},
				{Name: "expect two.status == 429", Verdict: check.Broken, Message: "an expectation is not true: two.status == 429", Line: 2},
			},
			Repeat: "wlmsim run scenarios/lag/stale.yaml --seed 18446744073709551615 --profile submitted",
		},
		{
			Scenario: "Odd | <names> ]]> ```", File: "odd|`file\x1b.yaml", Seed: 1, Profile: "reviewed", Verdict: check.Undecided,
			WallSeconds: 301, Groups: map[string]world.Counters{},
			Checks: []world.Check{{Name: "run", Verdict: check.Undecided, Message: "it hung ]]>\x00\n```\n\x1b[31m"}},
			Repeat: "wlmsim-exact run 'odd|`file\x1b.yaml' --seed 1 --profile reviewed",
		},
	}
}

func source(file string, line int) string {
	if file == "scenarios/lag/stale.yaml" && line == 2 {
		return "  - two.status == 429   # the lag\x1b[0m "
	}
	return ""
}

// Promises 1 and 2.
func TestGolden(t *testing.T) {
	for _, format := range report.Formats() {
		t.Run(format, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, report.Write(&b, format, sample(), source))
			requireGolden(t, format, b.String())
		})
	}
}

// side are the runs of one file under three profiles, and of another under one.
func side() []world.Result {
	run := func(profile string, verdict check.Verdict, throttled uint64, checks ...world.Check) world.Result {
		always := []world.Check{{Name: "permits_bounded", Verdict: check.Held}, {Name: "one_outcome", Verdict: check.Held}}
		return world.Result{
			Scenario: "The limit holds in the lag", File: "lag.yaml", Seed: 7, Profile: profile, Verdict: verdict, VirtualSeconds: 13, WallSeconds: 0.1,
			Searches: world.Searches{Sent: 3, Completed: 3 - int(throttled), Throttled: int(throttled)},
			Groups:   map[string]world.Counters{"late": {Completions: 4, Throttled: throttled, WouldThrottle: 2 - throttled}, "DEFAULT_WORKLOAD_GROUP": {}},
			Checks:   append(always, checks...), LatencyMS: world.LatencyMS{P50: 12.25, P99: 20},
			Repeat: "wlmsim run lag.yaml --seed 7 --profile " + profile,
		}
	}
	// One expectation twice, as of two steps; the second shows under upstream alone.
	twice := world.Check{Name: "expect two.status == 429", Verdict: check.Held, Line: 4}
	return []world.Result{
		run("submitted", check.Held, 2, world.Check{Name: "principal_stays", Verdict: check.Broken, Message: check.AsTold + "a canary was seen"}, twice),
		run("reviewed", check.Held, 2, world.Check{Name: "principal_stays", Verdict: check.Held}, twice),
		run("upstream", check.Broken, 1, world.Check{Name: "principal_stays", Verdict: check.Held}, twice,
			world.Check{Name: "expect two.status == 429", Verdict: check.Broken, Message: "an expectation is not true: two.status == 429", Line: 2},
			world.Check{Name: "expect <b>|three|</b>", Verdict: check.Held}),
		sample()[0],
	}
}

// Promises 1 and 5.
func TestProfilesSideBySide(t *testing.T) {
	for _, format := range []string{"text", "json", "markdown"} {
		t.Run(format, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, report.Write(&b, format, side(), source))
			requireGolden(t, "side."+format, b.String())
		})
	}
}

// Promise 5: over many seeds the columns are sums and shares.
func TestProfilesSideBySideOverManySeeds(t *testing.T) {
	var all []world.Result
	for _, r := range side()[:3] {
		for seed := range uint64(3) {
			r := r
			r.Seed = seed
			if seed == 1 {
				r.Verdict, r.Checks = check.Undecided, []world.Check{{Name: "run", Verdict: check.Undecided, Message: "it hung"}}
			}
			all = append(all, r)
		}
	}
	var b bytes.Buffer
	require.NoError(t, report.Write(&b, "text", all, source))
	requireGolden(t, "side.seeds", b.String())
}

// Promise 5: the same under every profile is no difference.
func TestProfilesThatDoNotDiffer(t *testing.T) {
	same := side()[1:2]
	same = append(same, same[0])
	same[1].Profile = "upstream"
	require.Empty(t, report.Differences(same))
	var b bytes.Buffer
	require.NoError(t, report.Write(&b, "text", same, nil))
	require.Contains(t, b.String(), "nothing differs (4 checks held under all)")
	require.NotContains(t, b.String(), "≠")
}

func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// Promise 4.
func TestNothingBreaksOutOfItsPlace(t *testing.T) {
	for _, format := range report.Formats() {
		var b bytes.Buffer
		require.NoError(t, report.Write(&b, format, sample(), nil))
		require.NotContains(t, b.String(), "\x1b", format)
		require.NotContains(t, b.String(), "\x00", format)
		if format == "junit" {
			var suites junit.Testsuites
			require.NoError(t, xml.Unmarshal(b.Bytes(), &suites))
			require.Equal(t, []int{3, 1, 1}, []int{suites.Tests, suites.Failures, suites.Errors})
		}
	}
}

func TestOneRunHasNoSummaryAndNoneAtAllHolds(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, report.Write(&b, "text", sample()[:1], source))
	require.NotContains(t, b.String(), "runs")
	require.Equal(t, check.Held, report.Verdict(nil))
	b.Reset()
	require.NoError(t, report.Write(&b, "json", nil, nil))
	require.Equal(t, "{\n  \"results\": []\n}\n", b.String())
}

func TestTheWorstVerdictCounts(t *testing.T) {
	all := sample()
	require.Equal(t, check.Broken, report.Verdict(all))
	require.Equal(t, check.Undecided, report.Verdict([]world.Result{all[0], all[2]}))
	require.Equal(t, check.Broken, report.Verdict([]world.Result{all[1], all[2]}))
	require.Equal(t, check.Held, report.Verdict(all[:1]))
}

func TestAnUnknownFormatIsNamed(t *testing.T) {
	require.ErrorContains(t, report.Write(&bytes.Buffer{}, "yaml", nil, nil), `format "yaml": want one of text, json, junit, markdown`)
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestTheWritersErrorComesBack(t *testing.T) {
	for _, format := range report.Formats() {
		require.ErrorContains(t, report.Write(fullDisk{}, format, sample(), nil), "no space", format)
	}
}

// Promise 3.
func TestReadTakesWhatJSONWrites(t *testing.T) {
	for _, written := range [][]world.Result{sample(), side()} {
		var b bytes.Buffer
		require.NoError(t, report.JSON(&b, written))
		results, err := report.Read(bytes.NewReader(b.Bytes()))
		require.NoError(t, err)
		require.Equal(t, written, results)
	}
}

func TestReadTakesNothingElse(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, report.JSON(&b, sample()[:1]))
	whole := b.String()
	without := func(name string) string {
		var d map[string][]map[string]any
		require.NoError(t, json.Unmarshal([]byte(whole), &d))
		require.Contains(t, d["results"][0], name)
		delete(d["results"][0], name)
		text, err := json.Marshal(d)
		require.NoError(t, err)
		return string(text)
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "EOF"},
		{"no results", "{}", `no array "results"`},
		{"null", `{"results": null}`, `no array "results"`},
		{"an unknown member", strings.Replace(whole, `"seed"`, `"sead": 1, "seed"`, 1), "sead"},
		{"another case", strings.Replace(whole, `"seed"`, `"Seed"`, 1), "Seed"},
		{"a member twice", strings.Replace(whole, `"seed": 7`, `"seed": 7, "seed": 7`, 1), "duplicate"},
		{"a wrong type", strings.Replace(whole, `"seed": 7`, `"seed": "7"`, 1), "seed"},
		{"something after the end", whole + "{}", "after top-level value"},
		{"an unknown verdict", strings.Replace(whole, `"held"`, `"fine"`, 1), `results[0]: verdict "fine"`},
		{"an unknown verdict of a check", strings.Replace(whole, "\"name\": \"permits_bounded\",\n          \"verdict\": \"held\"", `"name": "x", "verdict": "fine"`, 1), `verdict "fine"`},
		{"no verdict", without("verdict"), `verdict ""`},
		{"no seed", without("seed"), "results.[0].seed is missing"},
		{"no checks", without("checks"), "results.[0].checks is missing"},
		{"no counts", without("searches"), "results.[0].searches is missing"},
	} {
		_, err := report.Read(strings.NewReader(c.text))
		require.ErrorContains(t, err, c.want, c.name)
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	require.NoError(f, report.JSON(&b, sample()))
	f.Add(b.Bytes())
	f.Add([]byte(`{"results": []}`))
	f.Add([]byte(`{"results": [{"verdict": "held", "checks": [null]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		results, err := report.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		var again bytes.Buffer
		require.NoError(t, report.JSON(&again, results))
		back, err := report.Read(&again)
		require.NoError(t, err)
		require.Equal(t, results, back)
	})
}
