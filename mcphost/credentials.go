package mcphost

import (
	"net/url"
	"os"
	"regexp"
	"strings"
)

// modelSecrets are the variables that hold a credential of the model and nothing else: those of the Anthropic API,
// its forms at cloud providers, and Claude Code.
var modelSecrets = regexp.MustCompile(`(?i)^(ANTHROPIC_([A-Z_]+_)?(KEY|TOKEN|SECRET|TOKEN_FILE|CREDENTIALS_FILE)|ANTHROPIC_CUSTOM_HEADERS|` +
	`CLAUDE_CODE_([A-Z_]+_)?(TOKEN|KEY|PASSPHRASE|FILE_DESCRIPTOR)|AWS_BEARER_TOKEN_BEDROCK)$`)

// modelAddress are the variables that say where the model is.
var modelAddress = regexp.MustCompile(`(?i)^ANTHROPIC_([A-Z_]+_)?BASE_URL$`)

// cloudSecrets are the credentials of cloud providers. They are the model's if one of the switches is on; else they are
// those of whatever else runs there, and servers need them.
var cloudSecrets = []struct {
	switches []string
	secrets  *regexp.Regexp
}{
	{
		[]string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_ANTHROPIC_AWS"},
		regexp.MustCompile(`(?i)^AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|SECURITY_TOKEN|PROFILE|SHARED_CREDENTIALS_FILE|WEB_IDENTITY_TOKEN_FILE|CONTAINER_[A-Z_]+)$`),
	},
	{
		[]string{"CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD"},
		regexp.MustCompile(`(?i)^GOOGLE_APPLICATION_CREDENTIALS$`),
	},
	{
		[]string{"CLAUDE_CODE_USE_FOUNDRY"},
		regexp.MustCompile(`(?i)^AZURE_(CLIENT_SECRET|CLIENT_CERTIFICATE_PATH|CLIENT_CERTIFICATE_PASSWORD|PASSWORD|FEDERATED_TOKEN_FILE)$`),
	},
}

// IsModelCredential reports whether an environment variable holds a credential of the model: ANTHROPIC_API_KEY,
// ANTHROPIC_AUTH_TOKEN, CLAUDE_CODE_OAUTH_TOKEN and the like always, and the credentials of a cloud provider while the
// variable that selects the provider for the model (CLAUDE_CODE_USE_BEDROCK, CLAUDE_CODE_USE_VERTEX,
// CLAUDE_CODE_USE_FOUNDRY) is set. ANTHROPIC_BASE_URL and its like hold one if they have a user or a query. The process of a [Stdio] server does not inherit such variables: it gets those that
// its Env names. A nil lookup means os.LookupEnv.
func IsModelCredential(name string, lookup func(name string) (string, bool)) bool {
	if modelSecrets.MatchString(name) {
		return true
	}
	if lookup == nil {
		lookup = os.LookupEnv
	}
	if modelAddress.MatchString(name) {
		run, _ := lookup(name)
		process, _ := os.LookupEnv(name) // which a server's process would inherit, whatever the run has
		return holdsSecret(run) || holdsSecret(process)
	}
	for _, c := range cloudSecrets {
		if !c.secrets.MatchString(name) {
			continue
		}
		for _, s := range c.switches {
			switch v, _ := lookup(s); strings.ToLower(v) {
			case "", "0", "false", "no", "off":
			default:
				return true
			}
		}
	}
	return false
}

// holdsSecret reports whether an address has parts that could be secret.
func holdsSecret(address string) bool {
	u, err := url.Parse(address)
	return err != nil || u.User != nil || u.RawQuery != ""
}
