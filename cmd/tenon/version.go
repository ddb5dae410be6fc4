package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

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

// versionLine is what 'tenon version' and --version print.
func versionLine() string {
	info, _ := debug.ReadBuildInfo() // nil in a binary built without module support
	return fmt.Sprintf("tenon %s (%s %s/%s)", version(info), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// version is the module's version as the Go tool recorded it, and the revision of a build from a checkout.
func version(info *debug.BuildInfo) string {
	if info == nil {
		return "(unknown)"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				v += " " + s.Value[:12]
			}
		}
	}
	return v
}
