// Package editdistance compares names that may be misspelled.
package editdistance

// Distance returns the number of bytes to insert, delete, replace or swap with
// their neighbour that make a into b (the optimal string alignment distance), or
// limit+1 if there are more than limit. It takes time in proportion to the length
// of a times the smaller of limit and the length of b.
func Distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	far := limit + 1
	row, last, before := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = min(j, far)
	}
	for i := 1; i <= len(a); i++ {
		from, to := max(1, i-limit), min(len(b), i+limit) // the other cells exceed the limit
		row[from-1] = far
		if from == 1 {
			row[0] = min(i, far)
		}
		least := row[from-1]
		for j := from; j <= to; j++ {
			cost := last[j-1]
			if a[i-1] != b[j-1] {
				cost++
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cost = min(cost, before[j-2]+1)
			}
			row[j] = min(cost, row[j-1]+1, last[j]+1, far)
			least = min(least, row[j])
		}
		if to < len(b) {
			row[to+1] = far
		}
		if least == far {
			return far
		}
		row, last, before = before, row, last
	}
	return last[len(b)]
}
