//go:build unix

package subproc

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"
)

// Starting 50 children at once, each of which says a line, beside os/exec alone;
// alternately, medians.
func BenchmarkStart50(b *testing.B) {
	const n = 50
	run := func(start func() (io.WriteCloser, io.Reader, func())) time.Duration {
		var wg sync.WaitGroup
		stops := make([]func(), n)
		began := time.Now()
		for i := range n {
			wg.Go(func() {
				in, out, stop := start()
				stops[i] = stop
				_, _ = io.WriteString(in, "hello\n")
				_, _ = bufio.NewReader(out).ReadString('\n')
			})
		}
		wg.Wait()
		d := time.Since(began)
		for _, stop := range stops {
			wg.Go(stop)
		}
		wg.Wait()
		return d
	}
	var ours, theirs []time.Duration
	for b.Loop() {
		ours = append(ours, run(func() (io.WriteCloser, io.Reader, func()) {
			o := options("echo")
			o.Grace = 10 * time.Second
			p, err := Start(b.Context(), o)
			if err != nil {
				b.Fatal(err)
			}
			return p.Stdin, p.Stdout, func() { _ = p.Close() }
		}))
		theirs = append(theirs, run(func() (io.WriteCloser, io.Reader, func()) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = options("echo").Env
			in, _ := cmd.StdinPipe()
			out, _ := cmd.StdoutPipe()
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			return in, out, func() { in.Close(); _ = cmd.Wait() }
		}))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	a, c := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(float64(a.Microseconds()), "ours-us")
	b.ReportMetric(float64(c.Microseconds()), "exec-us")
	b.ReportMetric(float64(a)/float64(c), "ratio")
	b.ReportMetric(0, "ns/op")
}
