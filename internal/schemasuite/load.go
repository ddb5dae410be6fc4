package schemasuite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"os"
	"path/filepath"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// version is that of the module that ships the suite; suite/go.mod has it too.
const version = "v0.17.1"

// A dialect is a folder of the suite.
type dialect struct {
	name, folder, uri string
	draft             *jsonschema.Draft
}

var dialects = []dialect{
	{"2020-12", "draft2020-12", "https://json-schema.org/draft/2020-12/schema", jsonschema.Draft2020},
	{"2019-09", "draft2019-09", "https://json-schema.org/draft/2019-09/schema", jsonschema.Draft2019},
	{"draft-07", "draft7", "http://json-schema.org/draft-07/schema#", jsonschema.Draft7},
}

// declare adds the dialect to a schema that does not say it: the suite goes by
// folders, ours by $schema.
func (d dialect) declare(schema json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(schema, &object) != nil || object == nil || object["$schema"] != nil {
		return schema
	}
	members := bytes.TrimSpace(schema)[1:]
	sep := ","
	if len(object) == 0 {
		sep = ""
	}
	return json.RawMessage(fmt.Sprintf(`{"$schema":%q%s%s`, d.uri, sep, members))
}

// A group is a schema with its cases.
type group struct {
	file        string
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Tests       []testCase      `json:"tests"`
}

type testCase struct {
	Description string          `json:"description"`
	Data        json.RawMessage `json:"data"`
	Valid       bool            `json:"valid"`
}

func (g group) name() string { return g.file + " / " + g.Description }

// find returns the folder that has a folder for each dialect: the one that
// TENON_SCHEMA_SUITE names, or that of the pinned module in the module cache.
func find() (string, error) {
	if dir := os.Getenv("TENON_SCHEMA_SUITE"); dir != "" {
		return dir, nil
	}
	cache := os.Getenv("GOMODCACHE")
	if cache == "" {
		path := filepath.SplitList(build.Default.GOPATH)
		if len(path) == 0 {
			return "", errors.New("neither GOMODCACHE nor GOPATH says where modules are")
		}
		cache = filepath.Join(path[0], "pkg", "mod")
	}
	dir := filepath.Join(cache, "cuelang.org", "go@"+version, "encoding", "jsonschema", "testdata", "external", "tests")
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("the suite is not in the module cache, run `make suite`: %w", err)
	}
	return dir, nil
}

// load reads the required part of a dialect: the files of its folder, not
// those of the folder "optional" in it.
func load(dir string, d dialect) ([]group, error) {
	names, err := filepath.Glob(filepath.Join(dir, d.folder, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no files in %s", filepath.Join(dir, d.folder))
	}
	var all []group
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var groups []group
		if err := json.Unmarshal(data, &groups); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i := range groups {
			groups[i].file = strings.TrimSuffix(filepath.Base(name), ".json")
		}
		all = append(all, groups...)
	}
	return all, nil
}

// A library is the schema library as it comes, with nothing to load from.
type library struct {
	compiler *jsonschema.Compiler
	asked    bool // for a document from elsewhere
}

// schemaURL is where the schema under test lies.
const schemaURL = "suite:schema"

func newLibrary(d dialect, assertFormat bool) *library {
	l := &library{compiler: jsonschema.NewCompiler()}
	l.compiler.DefaultDraft(d.draft)
	l.compiler.UseLoader(l)
	if assertFormat {
		l.compiler.AssertFormat()
	}
	return l
}

// Load refuses every document and remembers that one was asked for.
func (l *library) Load(url string) (any, error) {
	l.asked = true
	return nil, fmt.Errorf("%s is elsewhere", url)
}

func (l *library) guard(schema json.RawMessage) (func(json.RawMessage) error, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	if err := l.compiler.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	compiled, err := l.compiler.Compile(schemaURL)
	if err != nil {
		return nil, err
	}
	return func(value json.RawMessage) error {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
		if err != nil {
			return err
		}
		return compiled.Validate(v)
	}, nil
}
