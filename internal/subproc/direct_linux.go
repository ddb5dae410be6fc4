package subproc

import (
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// directReader reads a pipe of ours by system calls of which the Go scheduler is not told. It need not
// be: a read of a pipe that does not block is over in microseconds. To tell it has its price where a
// process is woken for each line and sleeps again: the scheduler's monitor thread wakes up, too, and
// looks around for as long as the process is awake, which is a third of what a line costs.
type directReader struct {
	file *os.File
	pipe syscall.RawConn
}

// direct returns a reader of a pipe, whose deadlines and closing stay the file's.
func direct(f *os.File) io.Reader {
	c, err := f.SyscallConn()
	if err != nil || !neverBlocks(f) {
		return f // it says why, if anything is wrong
	}
	return directReader{f, c}
}

// neverBlocks reports whether system calls on a pipe never wait. They do where the runtime could not
// have it polled; then the scheduler must be told, or all wait.
func neverBlocks(f *os.File) bool {
	c, err := f.SyscallConn()
	if err != nil {
		return false
	}
	never := false
	err = c.Control(func(fd uintptr) {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		never = err == nil && flags&unix.O_NONBLOCK != 0
	})
	return err == nil && never
}

// Read reads what there is, and waits until there is something.
func (r directReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	var n uintptr
	var errno syscall.Errno
	err := r.pipe.Read(func(fd uintptr) bool {
		for {
			n, _, errno = syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
			if errno != syscall.EINTR {
				return errno != syscall.EAGAIN // else wait
			}
		}
	})
	switch {
	case err != nil:
		return r.file.Read(p) // it is closed, or out of time, and says so in its own words
	case errno != 0:
		return 0, os.NewSyscallError("read", errno)
	case n == 0:
		return 0, io.EOF
	}
	return int(n), nil
}
