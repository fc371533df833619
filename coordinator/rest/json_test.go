package rest_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func requireJSON(t testing.TB, data []byte) {
	t.Helper()
	require.True(t, json.Valid(data), "not JSON: %q", data)
	require.True(t, utf8.Valid(data), "not UTF-8: %q", data)
}

func requireDecode(t testing.TB, data []byte, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(data, into), "%s", data)
}
