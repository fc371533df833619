package explore

import (
	"fmt"
	"slices"
	"strconv"
)

// Comparison is the outcomes of a file that was explored under several
// profiles, a row each below one of heads and one of verdicts: a mark, the
// observed values, and for each profile how many schedules led to it, or a dash.
// An outcome that some profiles have and others have not is marked. Counts are
// no difference: how often an order is executed depends on the reduction.
type Comparison struct {
	File string
	Rows [][]string
}

// Compared compares the results of each file that was explored under several
// profiles.
func Compared(results []*Result) []Comparison {
	var files []string
	of := map[string][]*Result{}
	for _, r := range results {
		if of[r.File] == nil {
			files = append(files, r.File)
		}
		of[r.File] = append(of[r.File], r)
	}
	var all []Comparison
	for _, file := range files {
		if runs := of[file]; slices.ContainsFunc(runs, func(r *Result) bool { return r.Profile != runs[0].Profile }) {
			all = append(all, Comparison{file, sides(runs)})
		}
	}
	return all
}

// sides are the rows of a file's columns.
func sides(runs []*Result) [][]string {
	head := []string{""}
	verdicts := []string{""}
	var names []string
	var order []string // of outcomes, as they come
	values := map[string][]string{}
	counts := map[string][]string{}
	for i, r := range runs {
		verdicts = append(verdicts, string(r.Verdict))
		for _, o := range r.Outcomes {
			key := o.values()
			if counts[key] == nil {
				order = append(order, key)
				counts[key] = slices.Repeat([]string{"-"}, len(runs))
				names, values[key] = nil, nil
				for _, v := range o.Observed {
					names = append(names, v.Name)
					values[key] = append(values[key], fmt.Sprint(plain(v.Value)))
				}
			}
			counts[key][i] = strconv.Itoa(o.Schedules)
			if o.Forbidden {
				counts[key][i] += " forbidden"
			}
		}
	}
	head = append(head, names...)
	verdicts = append(slices.Repeat([]string{""}, len(names)), verdicts...)
	for _, r := range runs {
		head = append(head, r.Profile)
	}
	rows := [][]string{head, verdicts}
	for _, key := range order {
		mark := ""
		if slices.Contains(counts[key], "-") {
			mark = "≠"
		}
		rows = append(rows, slices.Concat([]string{mark}, values[key], counts[key]))
	}
	return rows
}
