package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/sim/live"
)

func TestExitCodeSaysHowACommandEnded(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		ran  bool
		want int
	}{
		{"it did what it should", nil, true, 0},
		{"it never ran", errors.New("unknown flag"), false, 2},
		{"a flag's value was wrong", fmt.Errorf("x: %w", usageError{errors.New("bad")}), true, 2},
		{"options were wrong", fmt.Errorf("node m1: %w", live.OptionsError{}), true, 2},
		{"it could not run", errors.New("address in use"), true, 3},
		{"it was interrupted", fmt.Errorf("not ready: %w", context.Canceled), true, 130},
	} {
		require.Equal(t, c.want, exitCode(c.err, c.ran), c.name)
	}
}

func TestExecuteReturnsTheExitCode(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"version"}, 0},
		{[]string{"node", "--name", "m1"}, 2},
		{[]string{"up", "--nodes", "none"}, 2},
		{[]string{"up", "--nodes", "0"}, 2},
		{[]string{"fly"}, 2},
		{[]string{"version", "now"}, 2},
		{[]string{"up", "--nodes", "1", "--http", taken.Addr().String()}, 3},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, c.want, execute(streams{in: &bytes.Buffer{}, out: &out, err: &errs}, c.args), "%v: %s", c.args, errs.String())
		if c.want != 0 {
			require.NotEmpty(t, errs.String(), "%v", c.args)
		}
	}
}
