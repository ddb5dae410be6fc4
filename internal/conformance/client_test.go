package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tenon-sdk/tenon/internal/peers"
)

// Of the scenarios that are not scored, these have to pass all the same.
var alsoRequired = []string{"auth/client-credentials-basic", "auth/client-credentials-jwt", "json-schema-2020-12-preservation"}

// The conformance suite runs all client scenarios of both revisions against a
// client built from mcphost and mcpauth: the protocol's, and the whole of
// authorization. Every scenario that is scored must pass; those that are not
// are listed with what came of them.
func TestClient(t *testing.T) {
	client, err := os.Executable() // see TestMain
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			results := t.TempDir()
			p := peers.Start(t, peers.Conformance(t, "client", "--command", client, "--requirements", revision, "--timeout", "60000", "-o", results))
			_ = p.Wait(t) // it fails when scenarios that are not scored do
			run := parse(p.Output())
			scored, passed, passedChecks, failedChecks := 0, 0, 0, 0
			for _, sc := range run.scenarios {
				why, free := run.notScored[sc.name]
				if free && !slices.Contains(alsoRequired, sc.name) {
					t.Logf("not scored (%s): %s: %d passed, %d failed", why, sc.name, sc.passed, sc.failed)
					continue
				}
				if !free {
					scored++
					passedChecks += sc.passed
					failedChecks += sc.failed
				}
				switch {
				case !sc.ok || sc.failed > 0:
					t.Errorf("%s: %d passed, %d failed\n%s\n%s", sc.name, sc.passed, sc.failed, clientFailures(t, results, sc.name), clientStderr(results, sc.name))
				case !free:
					passed++
				}
			}
			t.Logf("%s: %d of %d scored client scenarios pass, %d of %d checks", revision, passed, scored, passedChecks, passedChecks+failedChecks)
			if scored == 0 {
				t.Fatalf("the suite ran nothing; its output:\n%s", p.Output())
			}
		})
	}
}

func clientFailures(t *testing.T, results, name string) string {
	var out string
	for _, c := range checks(t, results, name+"-20*") {
		if c.Status == "FAILURE" {
			out += c.ID + ": " + c.Message + " " + string(c.Details) + "\n"
		}
	}
	return out
}

// clientStderr is what our client said of a scenario.
func clientStderr(results, name string) string {
	files, err := filepath.Glob(filepath.Join(results, name+"-20*", "stderr.txt"))
	if err != nil || len(files) == 0 {
		return ""
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		return err.Error()
	}
	return string(data)
}
