package main

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALiveNodeCollectsLessUnlessItWasToldHowOften(t *testing.T) {
	current := func() int {
		percent := debug.SetGCPercent(-1)
		debug.SetGCPercent(percent)
		return percent
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	back := collectLess()
	require.Equal(t, 400, current())
	back()
	require.Equal(t, 100, current())
	for _, told := range []int{-1, 50, 1000} {
		debug.SetGCPercent(told)
		back := collectLess()
		require.Equal(t, told, current())
		back()
		require.Equal(t, told, current())
	}
}
