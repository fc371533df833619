package scenario_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/scenario"
)

func TestATraceIsRead(t *testing.T) {
	rows, err := scenario.ParseTrace("t.csv", []byte("time,user,roles,index,service_time\n0s,alice,analyst;admin,logs,50ms\n1.5s,\"a,b\",,,\n"))
	require.NoError(t, err)
	require.Equal(t, []scenario.Traced{
		{At: 0, User: "alice", Roles: []string{"analyst", "admin"}, Index: "logs", ServiceTime: 50 * time.Millisecond},
		{At: 1500 * time.Millisecond, User: "a,b", ServiceTime: -1},
	}, rows)
}

func TestFaultsOfATrace(t *testing.T) {
	const head = "time,user,roles,index,service_time\n"
	for _, test := range []struct{ text, want string }{
		{"", "t.csv:1:1: the trace lacks its first line: time,user,roles,index,service_time"},
		{"time,user\n", "t.csv:1:1: the first line must be time,user,roles,index,service_time"},
		{head + "1s,a\n", "t.csv:2:1: 2 cells: there are 5 columns"},
		{head + "1,a,,,\n", "t.csv:2:1: time: time 1 lacks a unit"},
		{head + "1s,a,,,-1s\n", "t.csv:2:8: service_time: time -1s is negative"},
		{head + "1s,a,,,25h\n", "t.csv:2:8: service time 25h is over 24h"},
		{head + "2s,a,,,\n1s,a,,,\n", "t.csv:3:1: time 1s is before the line above"},
		{head + "2s,\"a,,,\n", "t.csv:2:"},
		{head + "1,a,,,\n2,a,,,\n", "t.csv:3:1: time: time 2 lacks a unit"},
	} {
		_, err := scenario.ParseTrace("t.csv", []byte(test.text))
		require.IsType(t, scenario.Faults{}, err, test.text)
		require.ErrorContains(t, err, test.want)
	}
}

func TestATraceIsBounded(t *testing.T) {
	_, err := scenario.ParseTrace("t.csv", make([]byte, scenario.MaxTraceBytes+1))
	require.ErrorContains(t, err, "t.csv:1:1: the trace has 67108865 bytes: at most 67108864")
}

func TestReadLooksForTracesBesideTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.yaml")
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write("s.yaml", base+"load: [{name: replay, arrive: {trace: day.csv}}]\n")

	_, err := scenario.Read(path)
	require.ErrorContains(t, err, path+":6:39: open "+filepath.Join(dir, "day.csv"))

	write("day.csv", "time,user,roles,index,service_time\nx,,,,\n")
	_, err = scenario.Read(path)
	require.ErrorContains(t, err, "day.csv:2:1: time: \"x\" is no time")

	write("day.csv", "time,user,roles,index,service_time\n1s,,,,\n")
	f, err := scenario.Read(path, "cluster.data=3")
	require.NoError(t, err)
	require.Equal(t, 3, f.Cluster.Data)
	require.Equal(t, []scenario.Traced{{At: time.Second, ServiceTime: -1}}, f.Trace("replay"))
	f, err = f.Set("seed=1")
	require.NoError(t, err)
	require.Len(t, f.Trace("replay"), 1)
	require.Nil(t, f.Trace("other"))
	require.Nil(t, (&scenario.File{}).Trace("replay"))

	_, err = scenario.Read(path, "cluster.data=0")
	require.IsType(t, scenario.Faults{}, err)

	_, err = scenario.Read(filepath.Join(dir, "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
