package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func newVersionCommand(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  wantArgs(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.out, versionLine())
			return err
		},
	}
}

// versionLine returns the module's version as the Go tool recorded it, and the platform.
func versionLine() string {
	version := "(unknown)" // in a binary built without module support
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(strings.Trim(info.Main.Version, "()"), "devel")
	}
	return fmt.Sprintf("tenon %s (%s %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
