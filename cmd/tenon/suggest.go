package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sdk/tenon/internal/editdistance"
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
		far := 1 + len(have)/4
		d := editdistance.Distance(want, have, far)
		switch {
		case d <= far && d < len(have):
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
