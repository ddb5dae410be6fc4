package mcpconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tailscale/hujson"

	"github.com/tenon-sdk/tenon/internal/skip"
)

func TestSetServer(t *testing.T) {
	const entry = `{"command":"x","args":["-y","a b"]}`
	tests := []struct {
		name, doc, want string
		at              Place
	}{
		{"no document", "", "{\n  \"mcpServers\": {\n    \"n\": {\n      \"command\": \"x\",\n      \"args\": [\n        \"-y\",\n        \"a b\"\n      ]\n    }\n  }\n}\n", nil},
		{"no map", "{\n    \"other\": 1\n}\n", "{\n    \"other\": 1,\n    \"mcpServers\": {\n        \"n\": {\n            \"command\": \"x\",\n            \"args\": [\n                \"-y\",\n                \"a b\"\n            ]\n        }\n    }\n}\n", nil},
		{"behind another, tabs", "{\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": \"y\"}\n\t}\n}", "{\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": \"y\"},\n\t\t\"n\": {\n\t\t\t\"command\": \"x\",\n\t\t\t\"args\": [\n\t\t\t\t\"-y\",\n\t\t\t\t\"a b\"\n\t\t\t]\n\t\t}\n\t}\n}", nil},
		{"line ends of Windows", "{\r\n  \"mcpServers\": {\r\n  }\r\n}\r\n", "{\r\n  \"mcpServers\": {\r\n    \"n\": {\r\n      \"command\": \"x\",\r\n      \"args\": [\r\n        \"-y\",\r\n        \"a b\"\r\n      ]\r\n    }\r\n  }\r\n}\r\n", nil},
		{"one line, no blanks", `{"mcpServers":{"a":{"command":"y"}},"z":1}`, `{"mcpServers":{"a":{"command":"y"},"n":{"command":"x","args":["-y","a b"]}},"z":1}`, nil},
		{"one line, blanks", `{"mcpServers": {"a": {"command": "y"}}}` + "\n", `{"mcpServers": {"a": {"command": "y"}, "n": {"command": "x", "args": ["-y", "a b"]}}}` + "\n", nil},
		{"a byte order mark", "\ufeff{\"mcpServers\":{}}", "\ufeff{\"mcpServers\":{\"n\":{\"command\":\"x\",\"args\":[\"-y\",\"a b\"]}}}", nil},
		{"in place of one", "{\n  \"mcpServers\": {\n    \"n\": {\"command\": \"old\"}, // kept\n    \"b\": 1\n  }\n}", "{\n  \"mcpServers\": {\n    \"n\": {\n      \"command\": \"x\",\n      \"args\": [\n        \"-y\",\n        \"a b\"\n      ]\n    }, // kept\n    \"b\": 1\n  }\n}", nil},
		{"a comment behind the last", "{\n  \"mcpServers\": {\n    \"a\": {} // about a\n  }\n}", "{\n  \"mcpServers\": {\n    \"a\": {}, // about a\n    \"n\": {\n      \"command\": \"x\",\n      \"args\": [\n        \"-y\",\n        \"a b\"\n      ]\n    }\n  }\n}", nil},
		{"a trailing comma", "{\n  \"mcpServers\": {\n    \"a\": {}, // about a\n  },\n}", "{\n  \"mcpServers\": {\n    \"a\": {}, // about a\n    \"n\": {\n      \"command\": \"x\",\n      \"args\": [\n        \"-y\",\n        \"a b\"\n      ]\n    },\n  },\n}", nil},
		{"a comment at the end, without a line end", `{"mcpServers":{}} // mine`, `{"mcpServers":{"n":{"command":"x","args":["-y","a b"]}}} // mine`, nil},
		{"an empty map with a comment", "{\n  \"mcpServers\": {\n    // none yet\n  }\n}", "{\n  \"mcpServers\": {\n    // none yet\n    \"n\": {\n      \"command\": \"x\",\n      \"args\": [\n        \"-y\",\n        \"a b\"\n      ]\n    }\n  }\n}", nil},
		{"null", `{"mcpServers":null}`, `{"mcpServers":{"n":{"command":"x","args":["-y","a b"]}}}`, nil},
		{"the last of two of one name", `{"mcpServers":{"n":1,"n":2}}`, `{"mcpServers":{"n":1,"n":{"command":"x","args":["-y","a b"]}}}`, nil},
		{"the local scope, new", `{"projects":{"/w":{"x":1}}}`, `{"projects":{"/w":{"x":1,"mcpServers":{"n":{"command":"x","args":["-y","a b"]}}}}}`, LocalPlace("/w")},
		{"the local scope, all of it", `{"a":1}`, `{"a":1,"projects":{"/w":{"mcpServers":{"n":{"command":"x","args":["-y","a b"]}}}}}`, LocalPlace("/w")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := SetServer([]byte(tt.doc), tt.at, "n", json.RawMessage(entry))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			back, ok, err := GetServer(got, tt.at, "n")
			if err != nil || !ok || !sameJSON(back, []byte(entry)) {
				t.Errorf("GetServer: got %s, %v, %v", back, ok, err)
			}
		})
	}
	for _, doc := range []string{`{"mcpServers":[]}`, `[]`, `{"a":`, `"x"`} {
		if _, err := SetServer([]byte(doc), nil, "n", json.RawMessage(entry)); err == nil {
			t.Errorf("%s: edited, want an error", doc)
		}
	}
	if _, err := SetServer(nil, nil, "n", json.RawMessage(`"x"`)); err == nil {
		t.Error("an entry that is no object was put in")
	}
}

func TestRemoveServer(t *testing.T) {
	tests := []struct{ name, doc, want string }{
		{"the first", "{\"mcpServers\": {\n  \"n\": {},\n  \"b\": {}\n}}", "{\"mcpServers\": {\n  \"b\": {}\n}}"},
		{"one between", "{\"mcpServers\": {\n  \"a\": {},\n  \"n\": {},\n  \"b\": {}\n}}", "{\"mcpServers\": {\n  \"a\": {},\n  \"b\": {}\n}}"},
		{"the last", "{\"mcpServers\": {\n  \"a\": {},\n  \"n\": {}\n}}", "{\"mcpServers\": {\n  \"a\": {}\n}}"},
		{"the only one", "{\"mcpServers\": {\n  \"n\": {}\n}}", "{\"mcpServers\": {}}"},
		{"in one line", `{"mcpServers":{"a":1,"n":2,"b":3}}`, `{"mcpServers":{"a":1,"b":3}}`},
		{"the last in one line", `{"mcpServers": {"a": 1, "n": 2}}`, `{"mcpServers": {"a": 1}}`},
		{"the last, trailing comma", "{\"mcpServers\": {\n  \"a\": {},\n  \"n\": {},\n}}", "{\"mcpServers\": {\n  \"a\": {},\n}}"},
		{"comments stay", "{\"mcpServers\": {\n  \"a\": {}, // about a\n  \"n\": {}, // about n\n  \"b\": {}\n}}", "{\"mcpServers\": {\n  \"a\": {}, // about a\n // about n\n  \"b\": {}\n}}"},
		{"twice", `{"mcpServers":{"n":1,"a":2,"n":3}}`, `{"mcpServers":{"a":2}}`},
		{"a byte order mark", "\ufeff" + `{"mcpServers":{"n":1}}`, "\ufeff" + `{"mcpServers":{}}`},
		{"escaped name", `{"mcpServers":{"\u006e":1}}`, `{"mcpServers":{}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, removed, err := RemoveServer([]byte(tt.doc), nil, "n")
			if err != nil || !removed {
				t.Fatalf("removed %v, %v", removed, err)
			}
			if string(got) != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
	for _, doc := range []string{`{}`, `{"mcpServers":{"a":1}}`, `{"mcpServers":null}`, "{ }\n"} {
		got, removed, err := RemoveServer([]byte(doc), nil, "n")
		if err != nil || removed || string(got) != doc {
			t.Errorf("%s: got %s, %v, %v; want it as it was", doc, got, removed, err)
		}
	}
}

func sameJSON(a, b []byte) bool {
	norm := func(data []byte) string {
		std, err := hujson.Standardize(bytes.Clone(data))
		if err != nil {
			return err.Error()
		}
		var v any
		if err := json.Unmarshal(std, &v); err != nil {
			return err.Error()
		}
		out, _ := json.Marshal(v)
		return string(out)
	}
	return norm(a) == norm(b)
}

// others are the raw members of the map of servers and of the document, but for the one that is edited.
func others(t *testing.T, doc []byte, name string) string {
	t.Helper()
	d, err := parseDocument(bytes.TrimPrefix(doc, utf8BOM), "")
	if err != nil {
		t.Fatalf("%q does not parse: %v", doc, err)
	}
	var b strings.Builder
	add := func(n node, skip string) {
		obj, ok := n.v.Value.(*hujson.Object)
		if !ok {
			return
		}
		for _, m := range obj.Members {
			if key := m.Name.Value.(hujson.Literal).String(); key != skip {
				fmt.Fprintf(&b, "%s:%s\n", d.data[m.Name.StartOffset:m.Name.EndOffset], d.data[m.Value.StartOffset:m.Value.EndOffset])
			}
		}
	}
	add(d.top(), serversKey)
	if n := d.top().get(serversKey); n.exists() {
		add(n, name)
	}
	return b.String()
}

// comments is all that is neither a value nor white space nor a comma.
func comments(doc []byte) string {
	d, err := parseDocument(bytes.TrimPrefix(doc, utf8BOM), "")
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for v := range d.root.All() {
		for _, extra := range [][]byte{v.BeforeExtra, v.AfterExtra} {
			b.Write(bytes.TrimSpace(extra))
		}
		switch c := v.Value.(type) {
		case *hujson.Object:
			b.Write(bytes.TrimSpace(c.AfterExtra))
		case *hujson.Array:
			b.Write(bytes.TrimSpace(c.AfterExtra))
		}
	}
	sum := [256]int{}
	for _, c := range []byte(b.String()) {
		if !strings.ContainsRune(" \t\r\n", rune(c)) {
			sum[c]++
		}
	}
	return fmt.Sprint(sum)
}

// Whatever is edited, the rest keeps its bytes and the edit reads as was meant.
func FuzzEdit(f *testing.F) {
	for _, doc := range []string{
		"", "{}", `{"mcpServers":{}}`, "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"y\"}\n  },\n  \"z\": [1, 2]\n}\n",
		"{\"mcpServers\": { // c\n \"a\": 1, /* d */ \"n\": 2, // e\n},}", "\ufeff{\r\n\t\"mcpServers\":\r\n{\"n\":{},\"n\":1}}",
		`{"mcpServers":{"a":1 /* x */ , // y` + "\n}}", `{"mcpServers":{"a":1// y` + "\n}}", `{"mcpServers":null}`,
	} {
		f.Add([]byte(doc), "n")
	}
	f.Fuzz(func(t *testing.T, doc []byte, name string) {
		const entry = `{"command":"x","env":{"K":"a:b,c\"d"}}`
		if len(doc) > 1<<12 || !json.Valid([]byte(hujson.String(name))) || hujson.String(name).String() != name {
			return
		}
		set, err := SetServer(doc, nil, name, json.RawMessage(entry))
		if err != nil {
			return
		}
		back, ok, err := GetServer(set, nil, name)
		if err != nil || !ok || !sameJSON(back, []byte(entry)) {
			t.Fatalf("%q + %q = %q, which has %s, %v, %v", doc, name, set, back, ok, err)
		}
		empty := len(bytes.TrimSpace(bytes.TrimPrefix(doc, utf8BOM))) == 0
		if !empty && name != serversKey {
			if a, b := others(t, doc, name), others(t, set, name); a != b {
				t.Fatalf("%q + %q = %q changes others:\n%s\n%s", doc, name, set, a, b)
			}
		}
		if _, had, _ := GetServer(doc, nil, name); !empty && !had && comments(doc) != comments(set) {
			t.Fatalf("%q + %q = %q changes comments", doc, name, set)
		}
		gone, removed, err := RemoveServer(set, nil, name)
		if err != nil || !removed {
			t.Fatalf("%q - %q: %v, %v", set, name, removed, err)
		}
		if _, still, err := GetServer(gone, nil, name); still || err != nil {
			t.Fatalf("%q - %q = %q has it still, %v", set, name, gone, err)
		}
		if a, b := others(t, set, name), others(t, gone, name); a != b {
			t.Fatalf("%q - %q = %q changes others:\n%s\n%s", set, name, gone, a, b)
		}
		if comments(set) != comments(gone) && !strings.Contains(string(set), "/") {
			t.Fatalf("%q - %q = %q changes comments", set, name, gone)
		}
	})
}

func TestUpdateFile(t *testing.T) {
	add := func(name string) func([]byte) ([]byte, error) {
		return func(doc []byte) ([]byte, error) {
			return SetServer(doc, nil, name, json.RawMessage(`{"command":"x"}`))
		}
	}
	t.Run("a new file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.json")
		if err := UpdateFile(path, 0o600, add("a")); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("got %v, %v; want mode 0600", info.Mode(), err)
		}
	})
	t.Run("mode and link are kept, nothing is left over", func(t *testing.T) {
		dir := t.TempDir()
		real, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "link.json")
		if err := os.WriteFile(real, []byte("{}"), 0o640); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("real.json", link); err != nil {
			skip.Missing(t, "no symbolic links here: %v", err)
		}
		if err := UpdateFile(link, 0o600, add("a")); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(link)
		if err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link has become %v, %v", info.Mode(), err)
		}
		if info, err := os.Stat(real); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
			t.Errorf("got %v, %v; want mode 0640", info.Mode(), err)
		}
		entries, _ := os.ReadDir(dir)
		if len(entries) != 2 {
			t.Errorf("%d files in the directory, want 2", len(entries))
		}
	})
	t.Run("an edit that fails or changes nothing writes nothing", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.json")
		refusal := errors.New("no")
		if err := UpdateFile(path, 0o600, func([]byte) ([]byte, error) { return nil, refusal }); !errors.Is(err, refusal) {
			t.Errorf("got %v, want the edit's error", err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("a file was made")
		}
	})
	t.Run("a change by another is not lost", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.json")
		once := false
		err := UpdateFile(path, 0o600, func(doc []byte) ([]byte, error) {
			if !once {
				once = true
				if err := os.WriteFile(path, []byte(`{"mcpServers":{"other":{"command":"y"}}}`), 0o600); err != nil {
					return nil, err
				}
			}
			return add("a")(doc)
		})
		data, _ := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), "other") || !strings.Contains(string(data), `"a"`) {
			t.Errorf("got %s, %v; want both servers", data, err)
		}
	})
	t.Run("a file that always changes is given up", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.json")
		n := 0
		err := UpdateFile(path, 0o600, func(doc []byte) ([]byte, error) {
			n++
			return []byte("{}"), os.WriteFile(path, fmt.Appendf(nil, `{"n":%d}`, n), 0o600)
		})
		if !errors.Is(err, ErrBusy) {
			t.Errorf("got %v, want ErrBusy", err)
		}
	})
	t.Run("readers see whole files", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.json")
		if err := UpdateFile(path, 0o600, add("s")); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		done := make(chan struct{})
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if data, err := os.ReadFile(path); err != nil || !json.Valid(data) {
					t.Errorf("read %q, %v", data, err)
					return
				}
			}
		})
		for i := range 20 {
			if err := UpdateFile(path, 0o600, add(fmt.Sprint("s", i))); err != nil {
				t.Error(err)
			}
		}
		close(done)
		wg.Wait()
	})
	t.Run("updates at one time", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.json")
		const writers, each = 8, 10
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					if err := UpdateFile(path, 0o600, add(fmt.Sprintf("s%d-%d", w, i))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if cfg, _ := Parse(data, nil); len(cfg.Servers) != writers*each {
			t.Errorf("%d of %d entries are there", len(cfg.Servers), writers*each)
		}
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
			t.Errorf("beside the file there is something left: %v", left)
		}
	})
}
