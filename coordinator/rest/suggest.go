package rest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/wlmsim/wlmsim/cluster"
)

// unrecognized refuses parameters, or metrics, that a path does not take, each
// with the known ones that it looks like, in OpenSearch's words.
func unrecognized(path, what string, unknown, known []string) error {
	slices.Sort(unknown)
	if len(unknown) > 1 {
		what += "s"
	}
	parts := make([]string, len(unknown))
	for i, name := range unknown {
		parts[i] = "[" + shorten(name) + "]"
		switch near := resembling(name, known); len(near) {
		case 0:
		case 1:
			parts[i] += " -> did you mean [" + near[0] + "]?"
		default:
			parts[i] += " -> did you mean any of [" + strings.Join(near, ", ") + "]?"
		}
	}
	return cluster.Errorf(cluster.IllegalArgument, "request [%s] contains unrecognized %s: %s", shorten(path), what, strings.Join(parts, ", "))
}

// resembling returns the known names that share more than half with a name,
// the closest first.
func resembling(name string, known []string) []string {
	if len(name) > maxShown {
		return nil
	}
	scores := map[string]float64{}
	var near []string
	for _, k := range known {
		score := 1 - float64(distance(name, k))/float64(max(len(name), len(k), 1))
		if _, seen := scores[k]; !seen && score > 0.5 {
			scores[k] = score
			near = append(near, k)
		}
	}
	slices.SortFunc(near, func(a, b string) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) })
	return near
}

// distance is how many bytes must be put in, taken out or changed to turn a
// into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
