package explore

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// MaxTurns bounds how often one entry of a schedule repeats its lane, and the
// length of a schedule.
const MaxTurns = 100_000

// Schedule is the names of the lanes in the order of their turns. See the
// package's comment for how it is written.
type Schedule []string

var entry = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*(?:>[a-z][0-9]+)?(?:\.[a-z]+)?(?:\.[2-9])?)(?:[×*]([1-9][0-9]*))?$`)

// ParseSchedule reads what [Schedule.String] writes.
func ParseSchedule(text string) (Schedule, error) {
	var s Schedule
	for i, word := range strings.Fields(text) {
		m := entry.FindStringSubmatch(word)
		if m == nil {
			return nil, fmt.Errorf("schedule: entry %d, %q, is not a lane or LANE×TURNS", i+1, word)
		}
		turns := 1
		if m[2] != "" {
			n, err := strconv.Atoi(m[2])
			if err != nil || n > MaxTurns {
				return nil, fmt.Errorf("schedule: entry %d, %q, has %s turns: at most %d", i+1, word, m[2], MaxTurns)
			}
			turns = n
		}
		if len(s)+turns > MaxTurns {
			return nil, fmt.Errorf("schedule: more than %d turns", MaxTurns)
		}
		for range turns {
			s = append(s, m[1])
		}
	}
	return s, nil
}

// String writes the schedule with turns in a row as one entry.
func (s Schedule) String() string {
	var b strings.Builder
	for i := 0; i < len(s); {
		n := 1
		for i+n < len(s) && s[i+n] == s[i] {
			n++
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s[i])
		if n > 1 {
			b.WriteString("×" + strconv.Itoa(n))
		}
		i += n
	}
	return b.String()
}
