package corpus

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"
)

const (
	leastServers = 30
	leastTools   = 500
	mostBytes    = 3 << 20
)

func TestCorpusIsLargeEnough(t *testing.T) {
	servers := Load(t)
	tools := 0
	for _, s := range servers {
		tools += len(s.Tools)
	}
	if len(servers) < leastServers || tools < leastTools {
		t.Errorf("%d servers with %d tools, want at least %d with %d", len(servers), tools, leastServers, leastTools)
	}
	t.Logf("%d servers, %d tools", len(servers), tools)
}

func TestCorpusSaysWhereItIsFrom(t *testing.T) {
	free := map[string]bool{"MIT": true, "Apache-2.0": true, "ISC": true, "BSD-2-Clause": true, "BSD-3-Clause": true, "MIT AND Apache-2.0": true}
	names := map[string]bool{}
	for _, s := range Load(t) {
		if s.Name == "" || s.Package == "" || s.Version == "" || !free[s.Licence] {
			t.Errorf("%+v: want a name, a package, a version and a free licence", Server{Name: s.Name, Package: s.Package, Version: s.Version, Licence: s.Licence})
		}
		if names[s.Name] {
			t.Errorf("%s is there twice", s.Name)
		}
		names[s.Name] = true
		if len(s.Tools) == 0 {
			t.Errorf("%s lists no tools", s.Name)
		}
		// A server that runs on another zod than it was made for lists schemas that say
		// nothing: its package was not installed whole.
		for _, tool := range s.Tools {
			if schema := string(tool.InputSchema); !strings.Contains(schema, `"type"`) {
				t.Errorf("%s/%s has the schema %s: was %s installed whole?", s.Name, tool.Name, schema, s.Package)
			}
		}
	}
}

func TestCorpusHasNoTraceOfTheMachine(t *testing.T) {
	size := 0
	err := fs.WalkDir(files, folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		size += len(data)
		for _, trace := range []string{"/corpus-", "/node_modules/"} {
			if i := bytes.Index(data, []byte(trace)); i >= 0 {
				t.Errorf("%s says %q", path, data[max(0, i-60):min(len(data), i+60)])
			}
		}
		if !strings.HasSuffix(string(data), "]}\n") {
			t.Errorf("%s is cut", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if size > mostBytes {
		t.Errorf("%d bytes, want at most %d", size, mostBytes)
	}
}
