package subproc

import (
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A directReader reads a pipe by system calls that the Go scheduler does not know of. A
// read that does not block takes microseconds, and to announce each read wakes the
// scheduler's monitor thread, which is a third of the cost of a line.
type directReader struct {
	file *os.File
	pipe syscall.RawConn
}

// direct returns a reader of a pipe. Deadlines and Close of the file apply to it.
func direct(f *os.File) io.Reader {
	c, err := f.SyscallConn()
	if err != nil || !neverBlocks(f) {
		return f // its errors are better
	}
	return directReader{f, c}
}

// neverBlocks reports whether system calls on a pipe never wait. They do if the runtime
// could not have the pipe polled; then the scheduler must know of them.
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

// Read is for [io.Reader].
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
