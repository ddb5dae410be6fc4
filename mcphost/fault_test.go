package mcphost

import "testing"

// Pain 9: of a process's last words those are told that say what is wrong.
func TestLastLines(t *testing.T) {
	for name, tt := range map[string]struct{ stderr, want string }{
		"plain": {"missing KEY\n", "missing KEY"},
		"many":  {"1\n2\n3\n4\n5\n6\n7", "3 | 4 | 5 | 6 | 7"},
		"node":  {"[eval]:1\nthrow new Error(\"no database\")\n^\n\nError: no database\n    at [eval]:1:7\n    at runScript (node:internal/vm:1)\n\nNode.js v20.20.2\n", `[eval]:1 | throw new Error("no database") | Error: no database`},
		"go": {
			"panic: no database\n\ngoroutine 1 [running]:\nmain.open(0x1, {0x2, 0x3})\n\t/src/main.go:7 +0x1d\nmain.main()\n\t/src/main.go:4 +0x1d\nexit status 2\n",
			"panic: no database",
		},
		"python":         {"Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\nValueError: no database\n", `Traceback (most recent call last): | File "x.py", line 1, in <module> | ValueError: no database`},
		"nothing but it": {"    at a\n    at b\n", "at a"},
		"nothing":        {"", ""},
	} {
		if got := lastLines(tt.stderr, 5, 500); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
