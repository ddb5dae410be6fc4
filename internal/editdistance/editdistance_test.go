package editdistance_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tenon-sdk/tenon/internal/editdistance"
)

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b        string
		limit, want int
	}{
		{"", "", 0, 0},
		{"", "abc", 3, 3},
		{"abc", "", 2, 3},
		{"same", "same", 0, 0},
		{"serach", "search", 2, 1},
		{"sarch", "search", 2, 1},
		{"seaarch", "search", 2, 1},
		{"kitten", "sitting", 3, 3},
		{"kitten", "sitting", 2, 3},
		{"ab", "ba", 1, 1},
		{"abcdef", "fedcba", 9, 5},
	} {
		if got := editdistance.Distance(tt.a, tt.b, tt.limit); got != tt.want {
			t.Errorf("Distance(%q, %q, %d) = %d, want %d", tt.a, tt.b, tt.limit, got, tt.want)
		}
	}
}

// Within the limit the distance is that of the textbook's full table.
// fault F14
func TestDistanceIsThatOfTheFullTable(t *testing.T) {
	word := func() string {
		b := make([]byte, rand.IntN(12))
		for i := range b {
			b[i] = "abc"[rand.IntN(3)]
		}
		return string(b)
	}
	for range 20_000 {
		a, b, limit := word(), word(), rand.IntN(9)
		if got, want := editdistance.Distance(a, b, limit), min(table(a, b), limit+1); got != want {
			t.Fatalf("Distance(%q, %q, %d) = %d, want %d", a, b, limit, got, want)
		}
	}
}

// table computes all cells.
func table(a, b string) int {
	cells := make([][]int, len(a)+1)
	for i := range cells {
		cells[i] = make([]int, len(b)+1)
		for j := range cells[i] {
			switch {
			case i == 0 || j == 0:
				cells[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				cells[i][j] = cells[i-1][j-1]
			default:
				cells[i][j] = 1 + min(cells[i-1][j-1], cells[i-1][j], cells[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cells[i][j] = min(cells[i][j], cells[i-2][j-2]+1)
			}
		}
	}
	return cells[len(a)][len(b)]
}
