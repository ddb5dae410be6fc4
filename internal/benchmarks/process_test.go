//go:build linux

package benchmarks

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/internal/peers"
)

// A cost is what one run of a program took, with all processes that it started.
type cost struct {
	started time.Time
	wall    time.Duration
	cpu     time.Duration // of user and system
	memory  int64         // bytes: the highest sum of what was resident at once
	out     []byte
}

// build builds one of the programs beside this file and returns its path.
func build(b *testing.B, name string) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), name)
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", path, "./"+name).CombinedOutput(); err != nil {
		b.Fatalf("building %s: %v\n%s", name, err, out)
	}
	return path
}

// measure runs a program to its end. It must succeed. A run that ended before its memory was looked at is made again.
func measure(b *testing.B, c peers.Command) cost {
	b.Helper()
	for {
		if cost := measureOnce(b, c); cost.memory > 0 {
			return cost
		}
	}
}

func measureOnce(b *testing.B, c peers.Command) cost {
	b.Helper()
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(b.Context(), c.Path, c.Args...)
	cmd.Stdout, cmd.Stderr = &out, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = environment(c.Env)
	cost := cost{started: time.Now()}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	exited, watched := make(chan struct{}), make(chan usage)
	go func() { watched <- watch(cmd.Process.Pid, exited) }()
	err := cmd.Wait()
	cost.wall = time.Since(cost.started)
	close(exited)
	seen := <-watched
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // whatever it has left behind
	if err != nil {
		b.Fatalf("%s: %v\n%s%s", c.Path, err, out.Bytes(), stderr.Bytes())
	}
	state := cmd.ProcessState // counts the descendants that were waited for
	cost.cpu = max(state.UserTime()+state.SystemTime(), seen.cpu)
	cost.memory = seen.memory
	cost.out = out.Bytes()
	return cost
}

// environment is that of this process without what would change how a peer works.
func environment(add map[string]string) []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "ANTHROPIC_") && !strings.HasPrefix(kv, "CLAUDE") && !strings.HasPrefix(kv, "TENON_") {
			env = append(env, kv)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(add)) {
		env = append(env, name+"="+add[name])
	}
	return env
}

type usage struct {
	cpu    time.Duration
	memory int64
}

// watch looks at a tree of processes every few milliseconds until done.
func watch(root int, done <-chan struct{}) usage {
	const interval, rescan = 5 * time.Millisecond, 10
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var peak usage
	pids, times := []int{root}, map[int]time.Duration{}
	for round := 0; ; round++ {
		if round%rescan == 0 {
			pids = tree(root)
		}
		var resident, highest int64
		for _, pid := range pids {
			now, high := memoryOf(pid)
			resident, highest = resident+now, max(highest, high)
			if _, cpu, ok := stat(pid); ok {
				times[pid] = cpu
			}
		}
		// One process alone may have had more between two looks.
		peak.memory = max(peak.memory, resident, highest)
		select {
		case <-ticker.C:
		case <-done:
			for _, cpu := range times {
				peak.cpu += cpu
			}
			return peak
		}
	}
}

// tree lists a process and its descendants.
func tree(root int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []int{root}
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid < root { // a child is younger
			continue
		}
		if parent, _, ok := stat(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	all := []int{root}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// stat returns the parent and the processor time of a process.
func stat(pid int) (parent int, cpu time.Duration, ok bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false // it has ended
	}
	// The name is in brackets and may hold anything.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 13 {
		return 0, 0, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i])) // numbers, by proc(5)
		return n
	}
	const tick = time.Second / 100
	return number(1), time.Duration(number(11)+number(12)) * tick, true
}

// memoryOf returns what is resident of a process, and the most that ever was.
func memoryOf(pid int) (now, high int64) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0
	}
	for line := range bytes.Lines(data) {
		fields := bytes.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(string(fields[1]), 10, 64)
		switch string(fields[0]) {
		case "VmHWM:":
			high = kb << 10
		case "VmRSS:":
			now = kb << 10
		}
	}
	return now, high
}
