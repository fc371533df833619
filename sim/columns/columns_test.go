package columns_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wlmsim/wlmsim/sim/columns"
)

func TestColumnsAreAlignedWhateverTheLetters(t *testing.T) {
	require.Equal(t, []string{
		"  name    limit",
		"  alice   1",
		"  José    2",
		"  Jose\u0301    3", // an accent that combines
		"  管理者  4",
		"          5",
	}, columns.Lines([][]string{{"name", "limit"}, {"alice", "1"}, {"José", "2"}, {"Jose\u0301", "3"}, {"管理者", "4"}, {"", "5"}}, 0))
}

// Ambiguous letters are narrow in every locale.
func TestTheLocaleDoesNotMatter(t *testing.T) {
	require.Equal(t, 5, columns.Width("×→│┌≠"))
}

func TestTheLastColumnIsWrapped(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("m1>d2.raft×2 ", 6))
	require.Equal(t, []string{
		"  outcome  shortest",
		"  200      " + long[:len("m1>d2.raft×2 m1>d2.raft×2 m1>d2.raft×2")],
		"           " + long[len("m1>d2.raft×2 m1>d2.raft×2 m1>d2.raft×2 "):],
		"  429      update",
	}, columns.Lines([][]string{{"outcome", "shortest"}, {"200", long}, {"429", "update"}}, 52))
}

// Promise 2: nothing is lost, no line is too wide but one of one word, and no
// word could have been on the line before.
func TestWrapping(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-zé管]{1,8}`), 1, 20).Draw(t, "words")
		most := rapid.IntRange(1, 30).Draw(t, "most")
		text := strings.Join(words, " ")
		lines := columns.Wrap(text, most)
		require.Equal(t, text, strings.Join(lines, " "))
		for i, line := range lines {
			if columns.Width(line) > most {
				require.NotContains(t, line, " ")
			}
			if i > 0 {
				first, _, _ := strings.Cut(line, " ")
				require.Greater(t, columns.Width(lines[i-1]+" "+first), most)
			}
		}
	})
}

func TestIndentKeepsLinesAndWrapsLongOnes(t *testing.T) {
	require.Equal(t, "one\n  two three\n  four", columns.Indent("one\ntwo three four\n", "  ", 12))
}
