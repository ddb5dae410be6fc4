package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/modeltest"
)

// TestMain lets this binary be the example when a test starts it.
func TestMain(m *testing.M) {
	if os.Getenv("HELLO") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestHello(t *testing.T) {
	model := modeltest.New(t,
		modeltest.ToolUse("mcp__stock__lookup", `{"SKU":"AB-00017"}`),
		modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
			last := r.Messages[len(r.Messages)-1]
			return modeltest.Text("There are " + last.Content[0].PlainText() + " left.")
		}),
	)
	server, err := model.Serve()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Dir = t.TempDir() // no configuration files
	cmd.Env = append(os.Environ(), "HELLO=1", "ANTHROPIC_API_KEY=test-key", "ANTHROPIC_AUTH_TOKEN=", "ANTHROPIC_BASE_URL="+server.URL)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, want := string(out), "There are 7 of AB-00017 left.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The program in the README is this one, so that it compiles and does what is said there.
func TestReadmeProgram(t *testing.T) {
	source := read(t, "main.go")
	_, program, ok := strings.Cut(source, "package main\n")
	if !ok {
		t.Fatal("main.go has no package clause")
	}
	blocks := fences(read(t, "../../README.md"), "go")
	if len(blocks) == 0 {
		t.Fatal("the README has no program")
	}
	if diff := cmp.Diff("package main\n"+program, blocks[0]); diff != "" {
		t.Errorf("the README's program is not examples/hello/main.go (-example +README):\n%s", diff)
	}
}

// Two commands do all the set-up, and they are the ones that are tested.
func TestReadmeCommands(t *testing.T) {
	blocks := fences(read(t, "../../README.md"), "sh")
	if len(blocks) == 0 {
		t.Fatal("the README has no commands")
	}
	if got, want := blocks[0], "go run ./examples/quickstart\nmake test\n"; got != want {
		t.Errorf("the first commands of the README are %q, want %q", got, want)
	}
}

// Every file that the README and CONTRIBUTING.md point to is there.
func TestReadmeLinks(t *testing.T) {
	for _, doc := range []string{"README.md", "CONTRIBUTING.md"} {
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`).FindAllStringSubmatch(read(t, "../../"+doc), -1) {
			if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
				t.Errorf("%s points to %s, which is not there", doc, m[1])
			}
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fences are the code blocks of one language.
func fences(markdown, language string) []string {
	var blocks []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(markdown, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}
