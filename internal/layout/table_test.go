package layout

// modulePath begins every import of our own.
const modulePath = "github.com/tenon-sdk/tenon"

// A room says what the packages of one folder may import of ours.
type room struct {
	// path is the folder below the module's root. One that ends in "/..."
	// stands for all folders below it that have no row of their own.
	path string
	// imports are the folders that code which ships may import, with "/..." for
	// those below one, "public" for every package outside of internal/ that is
	// not a command or an example, and "any" for all but what is for tests only.
	imports []string
	// tests are the folders that test files may import as well. The rooms in
	// testRooms are open to all test files.
	tests []string
	// planned is set while the room is in the design and not yet in the tree.
	planned bool
}

// rooms is the import graph of the design. Imports go one way:
//
//	cmd -> engine/* -> {agent, mcpconfig} -> mcphost
//	    -> {mcpserver, mcpauth, toolschema, toolsearch, permission} -> internal/*
//
// A new import between packages of ours is a line here, so that it is seen.
var rooms = []room{
	// Leaves: they know nothing of ours.
	{path: "internal/toolname"},
	{path: "internal/jsonl"},
	{path: "internal/jsonscan"},
	{path: "internal/clip"},
	{path: "internal/file"},
	{path: "internal/lograte"},
	{path: "internal/callback", imports: []string{"internal/lograte"}},
	{path: "internal/jsonequal"},
	{path: "internal/secret", imports: []string{"internal/clip"}},
	{path: "internal/rpcmsg", imports: []string{"internal/jsonscan"}},
	{path: "internal/subproc"},

	{path: "internal/editdistance"},
	{path: "internal/schemaguard", imports: []string{"internal/editdistance"}},
	// Its tests hold what it makes against the validator.
	{path: "internal/goschema", imports: []string{"internal/schemaguard"}},

	// In-process servers know the MCP library and JSON Schema only.
	{path: "mcpserver", imports: []string{"internal/schemaguard", "internal/goschema", "internal/rpcmsg"}, tests: []string{"mcpbridge"}},
	{path: "mcpbridge", imports: []string{"mcpserver", "internal/jsonl", "internal/jsonscan", "internal/rpcmsg"}},

	// What the host is made of. None of these knows another.
	{path: "permission", imports: []string{"internal/editdistance", "internal/toolname"}},
	{path: "toolschema", imports: []string{"internal/toolname", "internal/schemaguard"}},
	{path: "toolsearch", imports: []string{"internal/editdistance"}},
	{path: "mcpauth", imports: []string{"internal/clip", "internal/file"}},

	{path: "toolresult", imports: []string{"mcpserver", "internal/toolname", "internal/clip", "internal/jsonequal", "internal/jsonscan"}},
	{
		path: "mcphost/internal/transport",
		imports: []string{
			"mcpauth", "mcpserver",
			"internal/callback", "internal/clip", "internal/jsonl", "internal/jsonscan", "internal/lograte", "internal/rpcmsg", "internal/secret", "internal/subproc",
		},
	},
	{
		path: "mcphost",
		imports: []string{
			"mcphost/internal/transport", "mcpserver", "mcpauth", "toolresult", "permission",
			"internal/callback", "internal/clip", "internal/file", "internal/jsonequal", "internal/jsonscan", "internal/lograte", "internal/secret", "internal/subproc", "internal/toolname",
		},
		tests: []string{"mcpbridge"},
	},
	{path: "mcpconfig", imports: []string{"mcphost", "mcpauth", "permission", "internal/clip", "internal/editdistance", "internal/file", "internal/toolname", "internal/subproc"}, tests: []string{"mcpserver"}},

	// The contract imports no engine: the engine is a value.
	{path: "agent", imports: []string{"mcphost", "mcpserver", "permission", "internal/jsonscan"}},

	{path: "engine/internal/kit", imports: []string{"agent", "mcpconfig", "mcphost", "permission", "internal/file", "internal/toolname"}},
	{path: "engine/native/internal/transcript", imports: []string{"engine/internal/kit", "agent", "mcpserver", "toolresult", "internal/clip", "internal/jsonscan"}},
	{path: "engine/native/internal/messages", imports: []string{"engine/native/internal/transcript", "agent", "internal/clip"}},
	{path: "engine/native/internal/toolset", imports: []string{
		"engine/native/internal/transcript", "engine/native/internal/messages", "agent", "mcphost", "mcpserver",
		"permission", "toolresult", "toolschema", "toolsearch", "internal/clip", "internal/schemaguard", "internal/toolname",
	}},
	{
		path: "engine/native",
		imports: []string{
			"engine/native/internal/transcript", "engine/native/internal/messages", "engine/native/internal/toolset",
			"engine/internal/kit",
			"agent", "mcpconfig", "mcphost", "mcpserver", "toolresult", "toolschema", "toolsearch", "permission",
			"internal/clip", "internal/toolname",
		},
	},
	{path: "engine/claudecode/event", imports: []string{"agent"}},
	{path: "engine/claudecode/transcript", imports: []string{"agent", "internal/file", "internal/jsonl"}},
	{
		path: "engine/claudecode",
		imports: []string{
			"engine/internal/kit", "engine/claudecode/event",
			"agent", "mcpconfig", "mcphost", "mcpserver", "mcpbridge", "permission", "toolresult", "toolschema",
			"internal/file", "internal/toolname", "internal/jsonl", "internal/subproc",
		},
		tests: []string{"engine/claudecode/transcript"},
	},
	{path: "engine/enginetest", tests: []string{"agent", "mcphost", "mcpserver", "mcpbridge", "permission", "engine/native", "engine/claudecode"}},

	// The scripted model is for users' tests as well: it drags nothing in.
	{path: "modeltest", imports: []string{"internal/jsonscan"}},

	{path: "cmd/...", imports: []string{"any"}},
	{path: "examples/...", imports: []string{"public"}},

	// Tests only.
	{path: "internal/layout"},
	{path: "internal/requirements"},
	{path: "internal/peers", imports: []string{"internal/skip"}},
	{path: "internal/growth"},
	{path: "internal/memhttp"},
	{path: "internal/skip"},
	{path: "internal/corpus", tests: []string{"mcphost", "toolschema", "toolsearch"}},
	{path: "internal/schemasuite", imports: []string{"internal/skip"}, tests: []string{"internal/schemaguard"}},
	{path: "internal/faults", tests: []string{"mcphost", "mcpserver"}},
	{path: "internal/soak", tests: []string{"agent", "mcphost", "mcpserver", "mcpbridge", "engine/native"}},
	{path: "internal/differential", tests: []string{"agent", "mcphost", "mcpserver", "permission", "engine/native", "engine/claudecode"}},
	// The programs that it builds share a server.
	{path: "internal/benchmarks/...", imports: []string{"public", "internal/benchmarks/..."}},
	{path: "internal/conformance", tests: []string{"mcpserver", "mcphost", "mcpauth"}},
}

// testRooms are imported by test files only, and any test file may.
var testRooms = []string{"internal/growth", "internal/memhttp", "internal/skip", "internal/peers", "internal/schemasuite", "internal/corpus"}

// testHelpers are open to all test files; unlike testRooms they may be
// imported by code that ships where their row says so.
var testHelpers = []string{"modeltest"}

// walls keep a library of others in the rooms that need it.
var walls = []struct {
	module string // import path, with all below it
	why    string
	rooms  []string
}{
	{
		"github.com/anthropics/anthropic-sdk-go", "it takes minutes to compile",
		[]string{"engine/native", "cmd", "examples"},
	},
	{"github.com/spf13/cobra", "command lines are read by commands", []string{"cmd"}},
	{"golang.org/x/term", "terminals are for commands", []string{"cmd"}},
	{"github.com/mattn/go-runewidth", "terminals are for commands", []string{"cmd"}},
	{"github.com/zalando/go-keyring", "tokens are kept by mcpauth", []string{"mcpauth"}},
}

// skipsAllowed are packages that skip tests by themselves, with the reason.
var skipsAllowed = map[string]string{
	"internal/skip":     "it is the way to skip a test",
	"engine/enginetest": "an engine lists its exceptions with their reasons, and one that does not hold any more is a failure",
}

// stateAllowed are package-level variables that change and that no two callers
// can meet in, with the reason.
var stateAllowed = map[string]string{
	"agent.structInfos": "what is derived from a Go type is the same for everyone",
}

// forbiddenNames say nothing about what a package is for.
var forbiddenNames = []string{"util", "utils", "common", "helper", "helpers", "types", "models", "errors", "shared", "misc", "base"}

// maxLines bounds a Go file.
const maxLines = 800
