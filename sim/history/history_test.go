package history_test

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster/probe"
	"github.com/wlmsim/wlmsim/sim/history"
)

// full has a value in every field.
func full() history.Event {
	return history.Event{
		At: 12*time.Second + 5, Seq: 1, Kind: "wlm.acquired", Node: "d2", Life: 2, Search: "one", Group: "x1", Listener: "wlm",
		Version: 9, Bucket: 255, Held: 1, Limit: 2, Status: 429, Detail: `a "b" \ c` + "\n\x01é日",
	}
}

func text(t require.TestingT, h history.Header, events ...history.Event) string {
	var b bytes.Buffer
	require.NoError(t, history.Write(&b, h, events))
	return b.String()
}

func ExampleWrite() {
	log := history.NewLog(history.DefaultEvents)
	log.Add(history.Event{At: 11 * time.Second, Kind: history.RequestSent, Node: "d2", Search: "one"})
	log.Add(history.Of(11002*time.Millisecond, 1, probe.Event{
		Step: probe.Acquired, Node: "d2", Search: "one", Group: "x1", Version: 9, Bucket: 255, Held: 1, Limit: 1,
	}))
	if err := history.Write(os.Stdout, log.Header("A lag", 7, "reviewed"), log.Events()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"wlmsim_history":1,"scenario":"A lag","seed":7,"profile":"reviewed","events":2,"dropped":0}
	// {"at":11000000000,"seq":1,"kind":"request.sent","node":"d2","search":"one"}
	// {"at":11002000000,"seq":2,"kind":"wlm.acquired","node":"d2","life":1,"search":"one","group":"x1","version":9,"bucket":"00000000000000ff","held":1,"limit":1}
}

// A field that Of forgets would be missing in every history.
func TestOfTakesEveryFieldOfAStepButWhatItTouches(t *testing.T) {
	e := history.Of(5, 2, probe.Event{
		Step: probe.Acquired, Node: "n", Group: "g", Search: "s", Listener: "l", Version: 1, Bucket: 2, Held: 3, Limit: 4, Detail: "d", Touches: probe.ReadMap,
	})
	require.Equal(t, history.Event{
		At: 5, Kind: "wlm.acquired", Node: "n", Life: 2, Search: "s", Group: "g", Listener: "l", Version: 1, Bucket: 2, Held: 3, Limit: 4, Detail: "d",
	}, e)
	require.Equal(t, reflect.TypeFor[probe.Event]().NumField(), 11, "probe.Event has a new field: should a history have it?")
}

// Promise 1.
func TestWhatIsWrittenReadsBackAndPrintsAsItWasRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(drawEvent), 0, 8).Draw(t, "events")
		for i := range events {
			events[i].Seq = uint64(i) + 1
		}
		h := history.Header{
			Scenario: rapid.String().Draw(t, "scenario"), Seed: rapid.Uint64().Draw(t, "seed"), Profile: rapid.String().Draw(t, "profile"),
			Events: len(events), Dropped: rapid.Uint64().Draw(t, "dropped"),
		}
		written := text(t, h, events...)
		gotHeader, got, err := history.Read(strings.NewReader(written))
		require.NoError(t, err)
		require.Equal(t, h, gotHeader)
		require.ElementsMatch(t, events, got)
		require.Equal(t, written, text(t, gotHeader, got...))
	})
}

func drawEvent(t *rapid.T) history.Event {
	small := rapid.SampledFrom([]string{"", "", "a", `"`, "ü", "\x7f", "\u2028", "<&>"})
	return history.Event{
		At: time.Duration(rapid.Int64().Draw(t, "at")), Kind: rapid.StringN(1, 9, -1).Draw(t, "kind"), Node: small.Draw(t, "node"),
		Life: rapid.IntRange(-1, 2).Draw(t, "life"), Search: small.Draw(t, "search"), Group: small.Draw(t, "group"), Listener: small.Draw(t, "listener"),
		Version: rapid.Uint64().Draw(t, "version"), Bucket: rapid.Uint64().Draw(t, "bucket"), Held: rapid.IntRange(-2, 2).Draw(t, "held"),
		Limit: rapid.Int().Draw(t, "limit"), Status: rapid.SampledFrom([]int{0, 200, 429}).Draw(t, "status"), Detail: rapid.String().Draw(t, "detail"),
	}
}

// Promise 3.
func TestATextThatIsNotUTF8IsWrittenAllTheSame(t *testing.T) {
	e := history.Event{Seq: 1, Kind: "k", Search: "a\xffb\xc3"}
	_, got, err := history.Read(strings.NewReader(text(t, history.Header{}, e)))
	require.NoError(t, err)
	require.Equal(t, "a\ufffdb\ufffd", got[0].Search)
}

// Promises 1 and 2: there is one way to write each history.
func TestReadRefusesEverythingElseAndNamesTheLine(t *testing.T) {
	const header = `{"wlmsim_history":1,"scenario":"","seed":0,"profile":"","events":1,"dropped":0}` + "\n"
	const event = `{"at":1,"seq":1,"kind":"k","node":"m1"}` + "\n"
	_, _, err := history.Read(strings.NewReader(header + event))
	require.NoError(t, err)
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "line 1: EOF"},
		{"no header", event, "line 1: not the header of a history: wlmsim_history is missing"},
		{"other version", strings.Replace(header, ":1,", ":2,", 1) + event, "line 1: a history of version 2: this program reads version 1"},
		{"not JSON", "x\n", "line 1: not the header of a history"},
		{"negative count", strings.Replace(header, `"events":1`, `"events":-1`, 1) + event, "line 1: events is -1: 0 or more"},
		{"header key unknown", strings.Replace(header, `"seed"`, `"more":1,"seed"`, 1) + event, "line 1: not in the canonical form"},
		{"too few", header, "the history has 0 events: its header says 1"},
		{"too many", header + event + strings.Replace(event, `"seq":1`, `"seq":2`, 1), "the history has 2 events: its header says 1"},
		{"cut off", header + strings.TrimSuffix(event, "\n"), "line 2: the line feed at its end is missing"},
		{"blank line", header + "\n" + event, "line 2: not an event"},
		{"no kind", header + `{"at":1,"seq":1}` + "\n", "line 2: an event without a kind"},
		{"key unknown", header + strings.Replace(event, "{", `{"user":"bob",`, 1), "line 2: not in the canonical form"},
		{"key twice", header + strings.Replace(event, "{", `{"at":1,`, 1), "line 2: not in the canonical form"},
		{"key of another case", header + strings.Replace(event, "at", "At", 1), "line 2: not in the canonical form"},
		{"keys in another order", header + `{"seq":1,"at":1,"kind":"k","node":"m1"}` + "\n", "line 2: not in the canonical form"},
		{"a zero that is left out", header + strings.Replace(event, `"node"`, `"life":0,"node"`, 1), "line 2: not in the canonical form"},
		{"space", header + strings.Replace(event, ":", ": ", 1), "line 2: not in the canonical form"},
		{"carriage return", header + strings.Replace(event, "\n", "\r\n", 1), "line 2: not in the canonical form"},
		{"wrong type", header + strings.Replace(event, `"m1"`, "1", 1), "line 2: not an event"},
		{"number too large", header + strings.Replace(event, `"at":1`, `"at":9223372036854775808`, 1), "line 2: not an event"},
		{"bucket", header + strings.Replace(event, `"m1"`, `"m1","bucket":"xyz"`, 1), `line 2: bucket "xyz" is not 16 hexadecimal digits`},
		{"short bucket", header + strings.Replace(event, `"m1"`, `"m1","bucket":"ff"`, 1), "line 2: not in the canonical form"},
		{"out of order", header + strings.Replace(event, `"seq":1`, `"seq":2`, 1), "line 2: seq is 2: want 1"},
		{"long line", header + strings.Repeat(" ", history.MaxLine+1), "line 2: longer than 1048576 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := history.Read(strings.NewReader(c.text))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(text(f, history.Header{Scenario: "s", Seed: 7, Profile: "reviewed"}, full())))
	f.Add([]byte(text(f, history.Header{Dropped: 1})))
	f.Add([]byte(`{"wlmsim_history":1}` + "\n" + `{"at":1e3,"seq":1,"kind":""}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, events, err := history.Read(bytes.NewReader(b))
		if err == nil {
			require.Equal(t, string(b), text(t, h, events...))
		}
	})
}

// Promise 5.
func TestALogKeepsTheFirstEventsAndCountsOn(t *testing.T) {
	log := history.NewLog(2)
	for _, kind := range []string{"a", "b", "c"} {
		log.Add(history.Event{Kind: kind})
	}
	require.Equal(t, []history.Event{{Seq: 1, Kind: "a"}, {Seq: 2, Kind: "b"}}, log.Events())
	require.EqualValues(t, 3, log.Added())
	require.EqualValues(t, 1, log.Dropped())
	require.Equal(t, history.Header{Scenario: "s", Seed: 7, Profile: "p", Events: 2, Dropped: 1}, log.Header("s", 7, "p"))
	none := history.NewLog(0)
	require.EqualValues(t, 1, none.Add(history.Event{Kind: "a"}).Seq)
	require.Empty(t, none.Events())
}

// The log keeps its events in pieces.
func TestALogOfManyEventsKeepsAllInOrder(t *testing.T) {
	const many = 10_000
	log := history.NewLog(many)
	for range many + 1 {
		log.Add(history.Event{Kind: "k"})
	}
	events := log.Events()
	require.Len(t, events, many)
	for i := range events {
		require.EqualValues(t, i+1, events[i].Seq)
	}
}

func hashOf(events ...history.Event) string {
	log := history.NewLog(0)
	for _, e := range events {
		log.Add(e)
	}
	return log.Hash()
}

// Promise 4. A field that the hash forgets would let two runs pass for equal.
func TestTheHashDependsOnEveryFieldAndOnTheOrder(t *testing.T) {
	base := full()
	require.Equal(t, "a1746f76247c50f3", hashOf(base), "it is the same on every machine")
	seen := map[string]string{hashOf(base): "nothing"}
	note := func(what string, events ...history.Event) {
		h := hashOf(events...)
		require.NotContains(t, seen, h, "%s hashes as %s", what, seen[h])
		seen[h] = what
	}
	for i := range reflect.TypeOf(base).NumField() {
		name := reflect.TypeOf(base).Field(i).Name
		if name == "Seq" { // the log's own
			continue
		}
		e := base
		switch v := reflect.ValueOf(&e).Elem().Field(i); v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Uint64:
			v.SetUint(v.Uint() + 1)
		default:
			v.SetInt(v.Int() + 1)
		}
		note(name, e)
	}
	a, b := history.Event{Kind: "a"}, history.Event{Kind: "b"}
	note("a, b", a, b)
	note("b, a", b, a)
	note("a", a)
	note("none")
	note("text that moved", history.Event{Kind: "ab"})
	note("text that moved on", history.Event{Kind: "a", Node: "b"})
	note("text that moved far", history.Event{Kind: "a", Search: "b"})
}

func TestADroppedEventCountsInTheHash(t *testing.T) {
	kept, dropped := history.NewLog(10), history.NewLog(1)
	for i := range 3 {
		kept.Add(history.Event{Kind: "k", Held: i})
		dropped.Add(history.Event{Kind: "k", Held: i})
	}
	require.Equal(t, kept.Hash(), dropped.Hash())
}

func TestTheFirstDifferenceIsShownBehindWhatIsEqual(t *testing.T) {
	var a []history.Event
	for i := range 8 {
		a = append(a, history.Event{At: time.Duration(i) * time.Millisecond, Seq: uint64(i) + 1, Kind: "k", Node: "m1"})
	}
	b := append([]history.Event(nil), a...)
	require.Nil(t, history.FirstDifference(a, b))
	require.Nil(t, history.FirstDifference(nil, nil))
	b[6].Held = 2
	d := history.FirstDifference(a, b)
	require.Equal(t, 6, d.Index)
	require.Equal(t, &a[6], d.A)
	require.Equal(t, &b[6], d.B)
	require.Equal(t, `the histories differ from event 7 on
   both  1ms #2 m1 k
   both  2ms #3 m1 k
   both  3ms #4 m1 k
   both  4ms #5 m1 k
   both  5ms #6 m1 k
   first 6ms #7 m1 k
   other 6ms #7 m1 k held=2
`, d.String())
	d = history.FirstDifference(a[:1], nil)
	require.Equal(t, "the histories differ from event 1 on\n   first 0s #1 m1 k\n   other (has ended)\n", d.String())
	require.Contains(t, history.FirstDifference(a[:1], a).String(), "first (has ended)\n   other 1ms #2 m1 k\n")
}

func TestAnEventIsShownInOneLine(t *testing.T) {
	require.Equal(t, `12.000000005s #1 d2(2) wlm.acquired search=one group=x1 listener=wlm version=9 bucket=00000000000000ff held=1 limit=2 status=429 "a \"b\" \\ c\n\x01é日"`,
		full().String())
}

func TestAPrincipalsKeyTellsBytesApartAndNamesNobody(t *testing.T) {
	names := []string{"", "bob", "Bob", "bob ", "bob,x", "caf\u00e9", "cafe\u0301", "\xff", "\xfe", "-", "a/b"}
	users, roles := map[string]string{}, map[string]string{}
	for _, name := range names {
		user, role, ok := history.SplitPrincipal(history.PrincipalKey(name, []string{"", name, "other"}))
		require.True(t, ok)
		require.NotContains(t, users, user)
		require.Equal(t, name == "", user == "")
		if name != "" {
			require.NotContains(t, user, name)
			require.Equal(t, user, role)
		}
		users[user], roles[role] = name, name
	}
	require.Equal(t, "-/-", history.PrincipalKey("", nil))
	user, role, ok := history.SplitPrincipal("-/-")
	require.Equal(t, []any{"", "", true}, []any{user, role, ok})
	for _, bad := range []string{"", "-", "bob/-", "-/bob", "-/0123", "-/-/-"} {
		_, _, ok := history.SplitPrincipal(bad)
		require.False(t, ok, "%q", bad)
	}
}

func TestAnEventIsAddedWithoutAllocation(t *testing.T) {
	log, e := history.NewLog(0), full()
	require.Zero(t, testing.AllocsPerRun(100, func() { log.Add(e) }))
}

func BenchmarkAdd(b *testing.B) {
	e := full()
	for _, most := range []int{0, history.DefaultEvents} {
		b.Run(fmt.Sprintf("keep=%d", most), func(b *testing.B) {
			log := history.NewLog(most)
			for b.Loop() {
				if most > 0 && log.Dropped() > 0 {
					log = history.NewLog(most)
				}
				log.Add(e)
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	events := make([]history.Event, 1000)
	for i := range events {
		events[i] = full()
	}
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		_ = history.Write(&out, history.Header{}, events)
	}
	b.SetBytes(int64(out.Len()))
}
