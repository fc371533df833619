package wlm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wlmsim/wlmsim/wlm"
)

func TestTheChargedRole(t *testing.T) {
	for _, row := range []struct {
		roles           []string
		first, smallest string
	}{
		{nil, "", ""},
		{[]string{""}, "", ""},
		{[]string{"", "b", "a"}, "b", "a"},
		{[]string{"a", "", "b"}, "a", "a"},
		{[]string{"\ue000", "\U00010000"}, "\ue000", "\U00010000"}, // by UTF-16 code units, as Java
	} {
		require.Equal(t, row.first, wlm.RoleFirst.Charged(row.roles), "%q", row.roles)
		require.Equal(t, row.smallest, wlm.RoleSmallest.Charged(row.roles), "%q", row.roles)
	}
}
