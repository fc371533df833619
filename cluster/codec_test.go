package cluster_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/cluster"
)

func encodeState(t require.TestingT, s *cluster.State) []byte {
	var text bytes.Buffer
	require.NoError(t, cluster.EncodeState(&text, s))
	return text.Bytes()
}

func decodeState(t require.TestingT, text []byte) *cluster.State {
	s, err := cluster.DecodeState(bytes.NewReader(text))
	require.NoError(t, err)
	return s
}

// Promise 3.
func TestACommandIsReadBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCommand().Draw(t, "command")
		text, err := cluster.EncodeCommand(c)
		require.NoError(t, err)
		read, err := cluster.DecodeCommand(text)
		require.NoError(t, err)
		require.Equal(t, c, read)
		again, err := cluster.EncodeCommand(read)
		require.NoError(t, err)
		require.Equal(t, text, again)
	})
}

func TestAStateIsReadBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t)
		text := encodeState(t, s)
		read := decodeState(t, text)
		require.Equal(t, s.Version(), read.Version())
		require.True(t, cluster.Diff(s, read).Empty())
		require.Equal(t, contents(s), contents(read))
		require.Equal(t, text, encodeState(t, read))
	})
}

func TestTheFormatsOnDisk(t *testing.T) {
	text, err := cluster.EncodeCommand(&cluster.UpdateGroup{Name: "g", Throttling: cluster.ThrottlingPatch{NodeLimit: cluster.Give[int64](7), Attribute: cluster.Null[cluster.Attribute]()}, UpdatedAt: 5})
	require.NoError(t, err)
	require.Equal(t, `{"format":1,"kind":"update_group","body":{"name":"g","throttling":{"attribute":{"given":true},"node_limit":{"given":true,"value":7}},"updated_at":5}}`, string(text))
	s := apply(t, cluster.Empty(), create(throttled("a", "analytics", cluster.ByUsername, 10)))
	require.Equal(t, strings.TrimPrefix(`
{"format":1,"kind":"state","body":{"version":1}}
{"format":1,"kind":"settings","body":{}}
{"format":1,"kind":"group","body":{"_id":"a","name":"analytics","resiliency_mode":"enforced","resource_limits":{"cpu":0.01},"throttling":{"attribute":"username","node_limit":10},"updated_at":1}}
{"format":1,"kind":"end","body":{"records":3}}
`, "\n"), string(encodeState(t, s)))
}

func TestWhatIsNotACommandIsAnError(t *testing.T) {
	for _, row := range []struct{ name, text, message string }{
		{"empty", ``, "decode command: EOF"},
		{"cut off", `{"format":1,"kind":"delete_gro`, "decode command: unexpected EOF"},
		{"no JSON", `hello`, "decode command: invalid character 'h' looking for beginning of value"},
		{"null", `null`, "decode command: the value is null"},
		{"unknown format", `{"format":2,"kind":"delete_group","body":{"name":"g"}}`, "decode command: format 2 is unknown, this program knows 1"},
		{"unknown kind", `{"format":1,"kind":"rename_group","body":{}}`, `decode command: kind "rename_group" is unknown to this program; it was written by a newer one`},
		{"unknown field", `{"format":1,"kind":"delete_group","body":{"name":"g","force":true}}`, `decode command delete_group: json: unknown field "force"`},
		{"unknown field beside", `{"format":1,"kind":"delete_group","body":{"name":"g"},"term":3}`, `decode command: json: unknown field "term"`},
		{"no body", `{"format":1,"kind":"delete_group"}`, "decode command delete_group: EOF"},
		{"null body", `{"format":1,"kind":"delete_group","body": null }`, "decode command delete_group: the value is null"},
		{"wrong type", `{"format":1,"kind":"delete_group","body":{"name":7}}`, "decode command delete_group: json: cannot unmarshal number into Go struct field DeleteGroup.name of type string"},
		{"trailing", `{"format":1,"kind":"delete_group","body":{"name":"g"}} {}`, "decode command: text follows the end of the value"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, err := cluster.DecodeCommand([]byte(row.text))
			require.Nil(t, c)
			require.EqualError(t, err, row.message)
		})
	}
}

// One good state, with each of its lines spoilt in turn.
func TestWhatIsNotAStateIsAnError(t *testing.T) {
	s := apply(t, cluster.Empty(), create(group("a", "a")), create(group("b", "b")),
		&cluster.PutNode{Node: cluster.Node{Name: "d1", ID: "i", Roles: []cluster.Role{cluster.Data}}})
	lines := strings.SplitAfter(strings.TrimSuffix(string(encodeState(t, s)), "\n"), "\n")
	require.Len(t, lines, 6) // state, settings, a, b, d1, end
	pick := func(which ...int) string {
		text := ""
		for _, i := range which {
			text += strings.TrimSuffix(lines[i], "\n") + "\n"
		}
		return text
	}
	whole := pick(0, 1, 2, 3, 4, 5)
	decodeState(t, []byte(whole))
	for _, row := range []struct{ name, text, message string }{
		{"empty", "", "decode state: cut off after record 0"},
		{"no end", pick(0, 1, 2, 3, 4), "decode state: cut off after record 5"},
		{"cut in a record", whole[:len(whole)-5], "decode state, record 6: unexpected EOF"},
		{"no head", pick(1, 2, 3, 4, 5), `decode state, record 1: a record of kind "settings" must not follow one of kind ""`},
		{"no settings", pick(0, 2, 3, 4, 5), `decode state, record 2: a record of kind "group" must not follow one of kind "state"`},
		{"two heads", pick(0, 0, 1, 5), `decode state, record 2: a record of kind "state" must not follow one of kind "state"`},
		{"two settings", pick(0, 1, 1, 5), `decode state, record 3: a record of kind "settings" must not follow one of kind "settings"`},
		{"a lost entry", pick(0, 1, 2, 4, 5), "decode state, record 5: the end counts 5 records but 4 came"},
		{"entries out of order", pick(0, 1, 3, 2, 4, 5), `decode state, record 4: entry "a" is out of order after "b"`},
		{"an entry twice", pick(0, 1, 2, 2, 4, 5), `decode state, record 4: entry "a" is out of order after "a"`},
		{"kinds out of order", pick(0, 1, 4, 2, 3, 5), `decode state, record 4: a record of kind "group" must not follow one of kind "node"`},
		{"after the end", whole + lines[2], `decode state, record 7: a record of kind "group" must not follow one of kind "end"`},
		{"unknown kind", strings.Replace(whole, `"kind":"node"`, `"kind":"shelf"`, 1), `decode state, record 5: kind "shelf" is unknown to this program; it was written by a newer one`},
		{"unknown format", strings.Replace(whole, `"format":1`, `"format":9`, 1), "decode state, record 1: format 9 is unknown, this program knows 1"},
		{"unknown field", strings.Replace(whole, `"name":"b"`, `"name":"b","queue":{}`, 1), `decode state, record 4: json: unknown field "queue"`},
		{"one name twice", strings.Replace(whole, `"name":"b"`, `"name":"a"`, 1), `decode state: groups "a" and "b" are both named "a"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := cluster.DecodeState(strings.NewReader(row.text))
			require.Nil(t, s)
			require.EqualError(t, err, row.message)
		})
	}
}

// A text that JSON would change on the way is refused, not changed.
func TestWhatJSONCannotCarryIsNotWritten(t *testing.T) {
	bad := group("a", "caf\xe9")
	_, err := cluster.EncodeCommand(create(bad))
	require.EqualError(t, err, `encode command create_group: text "caf\xe9" is not UTF-8`)
	var out bytes.Buffer
	require.EqualError(t, cluster.EncodeState(&out, apply(t, cluster.Empty(), create(bad))), `encode state, record 3, group: text "caf\xe9" is not UTF-8`)
	infinite := group("a", "a")
	infinite.ResourceLimits["cpu"] = math.Inf(-1)
	_, err = cluster.EncodeCommand(create(infinite))
	require.EqualError(t, err, "encode command create_group: json: unsupported value: -Inf")
	huge := group("a", "a")
	huge.Settings = map[string]string{"k": strings.Repeat("v", cluster.MaxRecord)}
	require.ErrorContains(t, cluster.EncodeState(&out, apply(t, cluster.Empty(), create(huge))), "are over the bound of 16777216")
}

// Any bytes: an error, or a command that is written back and applied.
func FuzzDecodeCommandThenApply(f *testing.F) {
	for _, c := range seedCommands() {
		text, err := cluster.EncodeCommand(c)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(`{"format":1,"kind":"create_index","body":{"name":"x","shards":-1}}`))
	f.Add([]byte(`{"format":1,"kind":"put_settings","body":{"persistent":{"wlm.workload_group.mode":null}}}`))
	f.Add([]byte(`{"format":1,"kind":"create_group","body":{"group":{"_id":"","name":"","throttling":{}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := cluster.DecodeCommand(data)
		if err != nil {
			require.Nil(t, c)
			return
		}
		text, err := cluster.EncodeCommand(c)
		require.NoError(t, err)
		read, err := cluster.DecodeCommand(text)
		require.NoError(t, err)
		require.Equal(t, c, read)
		_ = c.Validate()
		for _, s := range []*cluster.State{cluster.Empty(), seedState(t)} {
			checkTransition(t, s, c)
		}
	})
}

// Any bytes: an error, or a state that works and is written back.
func FuzzDecodeState(f *testing.F) {
	f.Add(encodeState(f, cluster.Empty()))
	f.Add(encodeState(f, seedState(f)))
	f.Add([]byte(`{"format":1,"kind":"state","body":{"version":18446744073709551615}}` + "\n" + `{"format":1,"kind":"settings","body":{"transient":{}}}` + "\n" + `{"format":1,"kind":"end","body":{"records":2}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := cluster.DecodeState(bytes.NewReader(data))
		if err != nil {
			require.Nil(t, s)
			return
		}
		read := decodeState(t, encodeState(t, s))
		require.Equal(t, contents(s), contents(read))
		for _, g := range s.Groups() {
			_ = g.Faults(cluster.KeyAttribute)
		}
		for _, c := range seedCommands() {
			checkTransition(t, s, c)
		}
	})
}
