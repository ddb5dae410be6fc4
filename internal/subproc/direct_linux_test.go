package subproc

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A pipe that the runtime could not have polled blocks the thread that reads or writes it: the scheduler
// has to be told, or the whole program waits with it.
func TestBlockingPipesAreNotDirect(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, ok := direct(r).(directReader); !ok || !neverBlocks(w) {
		t.Error("a pipe that never blocks is not read directly")
	}
	for _, f := range []*os.File{r, w} {
		c, err := f.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var set error
		if err := errors.Join(c.Control(func(fd uintptr) { set = unix.SetNonblock(int(fd), false) }), set); err != nil {
			t.Fatal(err)
		}
	}
	if direct(r) != r || neverBlocks(w) {
		t.Error("a pipe that blocks is read directly")
	}
}
