package claudecode

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/mcphost"
)

// commonOf returns the part that all kinds of configurations have.
func commonOf(config mcphost.ServerConfig) mcphost.Common {
	switch c := config.(type) {
	case mcphost.Stdio:
		return c.Common
	case mcphost.HTTP:
		return c.Common
	case mcphost.SSE:
		return c.Common
	case mcphost.InProcessServer:
		return c.Common
	case mcphost.Custom:
		return c.Common
	case mcphost.Invalid:
		return c.Common
	}
	return mcphost.Common{}
}

// needsHost reports whether the CLI cannot connect a server as it is configured: the configuration has
// a field that the CLI's form lacks, or a text in which the CLI would expand a reference. References in
// files are expanded before, and those in a program's options are meant literally.
func needsHost(config mcphost.ServerConfig) bool {
	c := commonOf(config)
	if c.ConnectTimeout != 0 || c.IdleTimeout != 0 || len(c.ToolTimeouts) > 0 || c.Required || c.MaxMessageBytes != 0 || c.Roots != nil {
		return true
	}
	remote := func(h mcphost.HTTP) bool {
		return h.HTTPClient != nil || h.HeadersFunc != nil || h.Auth != nil || hasReference(h.URL) || hasReference(slices.Collect(maps.Values(h.Headers))...)
	}
	switch c := config.(type) {
	case mcphost.Stdio:
		return c.CleanEnv || c.Dir != "" || hasReference(c.Command) || hasReference(c.Args...) || hasReference(slices.Collect(maps.Values(c.Env))...)
	case mcphost.HTTP:
		return remote(c)
	case mcphost.SSE:
		return remote(mcphost.HTTP(c))
	case mcphost.InProcessServer:
		return false
	}
	return true
}

// hasReference reports whether the CLI would expand a reference to a variable in one of the texts.
func hasReference(texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "${") })
}

// serverEnv returns the environment of a server that the CLI starts: that of this process without the
// credentials of the model, and the variables of its configuration, which may include them.
func serverEnv(o *agent.Options, config map[string]string) map[string]string {
	env := map[string]string{}
	for _, kv := range os.Environ() {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" || slices.Contains(nesting, name) || mcphost.IsModelCredential(name, kit.Lookup(o.Env)) {
			continue
		}
		if hasReference(value) { // the CLI expands it, so the value has to come from the CLI's own environment
			if _, other := o.Env[name]; other || strings.ContainsAny(name, ":}") {
				continue
			}
			value = "${" + name + "}"
		}
		env[name] = value
	}
	maps.Copy(env, config)
	return env
}
