package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// didYouMean is the middle of an error message about an unknown name: "; did you mean "x"?", or nothing.
func didYouMean(name string, known []string) string {
	close := near(name, known)
	for i, k := range close {
		close[i] = strconv.Quote(k)
	}
	return meaning(close)
}

// meaning asks whether one of the names is meant; nothing if there are none.
func meaning(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// near gives up to three of the known names that name may have been meant for, the nearest first.
func near(name string, known []string) []string {
	type candidate struct {
		name string
		dist int
	}
	var found []candidate
	want := strings.ToLower(name)
	for _, k := range known {
		have := strings.ToLower(k)
		d := distance(want, have)
		switch {
		case d <= 1+len(have)/4 && d < len(have):
		case len(want) >= 3 && strings.Contains(have, want), len(have) >= 3 && strings.Contains(want, have):
			d = len(have) // behind the misspellings
		default:
			continue
		}
		found = append(found, candidate{k, d})
	}
	slices.SortStableFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.dist, b.dist), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, c := range found[:min(3, len(found))] {
		names = append(names, c.name)
	}
	return names
}

// distance is the number of single-byte edits between a and b: bytes put in, taken out, replaced, or swapped
// with their neighbour (optimal string alignment).
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := last[j]
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
