package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxFaults is how many faults [Faults.Error] shows; more would not be read.
const MaxFaults = 100

// shownRunes is how much of a long line a fault shows.
const shownRunes = 160

// shownWords is how many words a fault lists; all keys and steps fit.
const shownWords = 30

// Fault is one thing that is wrong with a file, and where.
type Fault struct {
	File    string
	Line    int // from 1
	Col     int // in characters, from 1
	Message string
	Text    string // the line, or the whole assignment of a --set
}

// Faults are all the faults that were found, by place. It is the only type of
// error that [Parse], [Read] and [ParseTrace] return for a bad file.
type Faults []Fault

// Error lists the faults as file:line:col: message, each with its line and a
// caret under the place.
func (fs Faults) Error() string {
	var b strings.Builder
	for i, f := range fs {
		if i == MaxFaults {
			fmt.Fprintf(&b, "and %d more\n", len(fs)-MaxFaults)
			break
		}
		b.WriteString(f.String())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// String returns the fault as [Faults.Error] shows it, with a final newline.
func (f Fault) String() string {
	text, col := window([]rune(f.Text), f.Col)
	return fmt.Sprintf("%s:%d:%d: %s\n    %s\n    %s^\n", f.File, f.Line, f.Col, f.Message, string(text), indent(text, col))
}

// window cuts a long line down to the part around col and returns where col is
// in that part.
func window(text []rune, col int) ([]rune, int) {
	if len(text) <= shownRunes {
		return text, col
	}
	from := max(0, min(col-shownRunes/2, len(text)-shownRunes))
	return text[from : from+shownRunes], col - from
}

// indent is what stands before the caret: tabs stay tabs so that it lines up.
func indent(text []rune, col int) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, string(text[:max(0, min(col-1, len(text)))]))
}

func (fs Faults) sorted() Faults {
	slices.SortStableFunc(fs, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return fs
}

// orNil returns the faults as an error, or nil if there are none.
func (fs Faults) orNil() error {
	if len(fs) == 0 {
		return nil
	}
	return fs.sorted()
}

// unknown says that a word is not one of those allowed, and which is meant or
// which there are.
func unknown(what, word string, allowed []string) string {
	if near := nearest(word, allowed); near != "" {
		return fmt.Sprintf("unknown %s %q: did you mean %q?", what, word, near)
	}
	if len(allowed) == 0 {
		return fmt.Sprintf("unknown %s %q: the file has none", what, word)
	}
	return fmt.Sprintf("unknown %s %q: one of %s", what, word, listed(allowed))
}

// listed joins words, of many only the first ones.
func listed(words []string) string {
	if more := len(words) - shownWords; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:shownWords], ", "), more)
	}
	return strings.Join(words, ", ")
}

// nearest returns the word that a typing mistake away from word, or "".
func nearest(word string, allowed []string) string {
	best, least := "", 1+min(2, len([]rune(word))/3)
	for _, a := range allowed {
		if d := distance([]rune(strings.ToLower(word)), []rune(strings.ToLower(a))); d < least {
			best, least = a, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b []rune) int {
	if len(a) > 64 || len(b) > 64 {
		return 64 // names are short; a long text is no misspelling
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0:
				rows[i][j] = j
			case j == 0:
				rows[i][j] = i
			default:
				rows[i][j] = step(rows, a, b, i, j)
			}
		}
	}
	return rows[len(a)][len(b)]
}

func step(rows [][]int, a, b []rune, i, j int) int {
	change := 1
	if a[i-1] == b[j-1] {
		change = 0
	}
	d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
	if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
		d = min(d, rows[i-2][j-2]+1)
	}
	return d
}
