package subproc

import (
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A group is the job that a child runs in. Windows closes the job, and ends all
// that run in it, when this process ends.
//
// What the child starts before it is in the job escapes; that is a matter of
// microseconds after its start.
type group struct {
	job  windows.Handle // 0 if there is none; then only the child is ended
	proc *os.Process
}

func prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW,
		HideWindow:    true,
	}
}

func newGroup(p *os.Process) group {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return group{proc: p}
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
		},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		err = assign(job, p.Pid)
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return group{proc: p}
	}
	return group{job: job, proc: p}
}

func assign(job windows.Handle, pid int) error {
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(h) }()
	return windows.AssignProcessToJobObject(job, h)
}

// terminate does nothing: a process without a console cannot be asked to end
// other than by the end of its stdin.
func (g group) terminate() {}

func (g group) kill() {
	if g.job == 0 {
		_ = g.proc.Kill() // an error means that it ended
		return
	}
	_ = windows.TerminateJobObject(g.job, 1)
}

// waitGone ends what is left in the job at once: there is nothing to ask it.
func (g group) waitGone(time.Duration) bool {
	g.kill()
	return true
}

func (g group) release() {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
	}
}

func (g group) awaitExit() bool { return false }

func signalOf(*os.ProcessState) string { return "" }
