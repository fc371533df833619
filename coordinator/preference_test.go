package coordinator_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/coordinator"
)

// The shards of documents are OpenSearch's: computed by its hash of the UTF-16
// form, over the 1,024 or so shards that an index could be split into.
func TestARoutingLeadsToOpenSearchsShard(t *testing.T) {
	for _, row := range []struct {
		routing string
		shards  int
		hash    int32 // Murmur3HashFunction
	}{
		{"hell", 1, 0x5a0cb7c3}, {"hell", 5, 0x5a0cb7c3}, {"hello", 5, -0x283ce677}, {"hello w", 6, 0x22ab2984},
		{"hello wo", 8, -0x20f35edd}, {"hello wor", 1024, -0x188bb29f},
	} {
		most := map[int]int{1: 1024, 5: 640, 6: 768, 8: 1024, 1024: 2048}[row.shards]
		want := ((int(row.hash)%most + most) % most) / (most / row.shards)
		require.Equal(t, want, coordinator.ShardOf(row.routing, row.shards), "%q of %d", row.routing, row.shards)
	}
}

func TestARoutingStaysWithinItsIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := rapid.IntRange(1, 1024).Draw(t, "shards")
		at := coordinator.ShardOf(rapid.String().Draw(t, "routing"), shards)
		require.GreaterOrEqual(t, at, 0)
		require.Less(t, at, shards)
	})
}

func TestPreferencesThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"mine":                   "",
		"_local":                 "",
		"_shards:1,2":            "",
		"_shards:1|_only_local":  "",
		"_shards:1|_nowhere":     "no Preference for [_nowhere]",
		"_shards:":               `For input string: "" in preference [_shards:]`,
		"_shards:-1":             `For input string: "-1" in preference [_shards:-1]`,
		"_":                      "no Preference for [_]",
		"_only_nodes:d1,d2":      "",
		strings.Repeat("x", 100): "",
	} {
		_, err := coordinator.ParsePreference(text)
		if want == "" {
			require.NoError(t, err, text)
		} else {
			require.EqualError(t, err, want)
		}
	}
}

func FuzzParsePreference(f *testing.F) {
	for _, text := range []string{"_shards:0,2|_local", "_only_nodes:d*", "x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := coordinator.ParsePreference(text); err == nil && strings.HasPrefix(text, "_") {
			require.Regexp(t, "^_(shards|local|only_local|only_nodes|prefer_nodes|primary|primary_first|replica|replica_first)", text)
		}
	})
}
