//go:build unix

package main

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write what the golden files should hold")

func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m, goleak.Find}, map[string]func(){
		"tenon": main,
		"srv":   func() { os.Exit(srvMain(os.Args[1:])) },
	})
}

// leakChecked runs the tests and then looks for goroutines that they left behind.
type leakChecked struct {
	m    *testing.M
	find func(...goleak.Option) error
}

func (l leakChecked) Run() int {
	code := l.m.Run()
	if code != 0 {
		return code
	}
	if err := l.find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
