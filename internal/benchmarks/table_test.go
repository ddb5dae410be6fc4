//go:build linux

package benchmarks

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// TestMain prints the table when the benchmarks have run. Each of them runs once: what it does, it repeats itself.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.benchtime", "1x"); err != nil {
		panic(err)
	}
	code := m.Run()
	table.print(os.Stdout)
	os.Exit(code)
}

// table is what the benchmarks of this run have measured.
var table rows

type rows []row

// A row is one line of the table. Without theirs there is nothing to compare with, and note says why.
type row struct {
	work         string
	unit         string
	ours, theirs []float64
	goal         float64 // the ratio at most, or without theirs the value of ours; 0 is none
	note         string
}

// add puts a row into the table, and its figures into the benchmark's own line.
func (t *rows) add(b *testing.B, r row) {
	b.Helper()
	*t = append(*t, r)
	b.ReportMetric(0, "ns/op") // of which a benchmark of pairs has none
	name := strings.NewReplacer(" ", "-", ",", "", ":", "").Replace(r.work)
	if r.theirs != nil {
		b.ReportMetric(r.ratio(), name+"-ratio")
		return
	}
	b.ReportMetric(median(r.ours), name+"-"+r.unit)
}

// ratio is the median of the rounds' ratios: what slows the machine down slows both sides of a round down.
func (r row) ratio() float64 {
	ratios := make([]float64, len(r.ours))
	for i := range ratios {
		ratios[i] = r.ours[i] / r.theirs[i]
	}
	return median(ratios)
}

// verdict holds the row against its goal.
func (r row) verdict() string {
	if r.goal == 0 {
		return ""
	}
	got, goal := median(r.ours), fmt.Sprintf("<= %g %s", r.goal, r.unit)
	if r.theirs != nil {
		got, goal = r.ratio(), fmt.Sprintf("<= %g", r.goal)
	}
	if got > r.goal {
		return goal + " MISSED"
	}
	return goal
}

func (t rows) print(w io.Writer) {
	if len(t) == 0 {
		return
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\nwork\tours\ttheirs\tratio\tgoal\t")
	for _, r := range t {
		ratio, theirs := "-", r.note
		if r.theirs != nil {
			ratio, theirs = fmt.Sprintf("%.3f", r.ratio()), spread(r.theirs, r.unit)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t\n", r.work, spread(r.ours, r.unit), theirs, ratio, r.verdict())
	}
	fmt.Fprintln(tw, "\nmedian (minimum to maximum); the two sides were measured alternately, and the ratio is the median of the rounds' ratios")
	_ = tw.Flush()
}

// spread is the median with minimum and maximum.
func spread(values []float64, unit string) string {
	if len(values) == 1 {
		return number(values[0]) + " " + unit
	}
	return fmt.Sprintf("%s %s (%s to %s)", number(median(values)), unit, number(slices.Min(values)), number(slices.Max(values)))
}

// number writes three digits that mean something.
func number(v float64) string {
	switch {
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// each maps samples to the numbers of a row.
func each[T any](samples []T, f func(T) float64) []float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = f(s)
	}
	return values
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// alternate measures two sides in turn: A B A B ...
func alternate[T any](rounds int, ours, theirs func() T) (a, z []T) {
	for range rounds {
		a = append(a, ours())
		z = append(z, theirs())
	}
	return a, z
}

func TestTable(t *testing.T) {
	var out strings.Builder
	rows{
		{work: "one", unit: "ms", ours: []float64{3, 1, 2}, theirs: []float64{100, 120, 80}, goal: 0.05},
		{work: "two", unit: "ms", ours: []float64{30}, theirs: []float64{100}, goal: 0.05},
		{work: "three", unit: "KB", ours: []float64{149.6}, goal: 150, note: "nothing to compare with"},
	}.print(&out)
	for _, want := range []string{
		"one    2.00 ms (1.00 to 3.00)  100 ms (80.0 to 120)     0.025  <= 0.05         \n",
		"two    30.0 ms                 100 ms                   0.300  <= 0.05 MISSED  \n",
		"three  150 KB                  nothing to compare with  -      <= 150 KB       \n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
