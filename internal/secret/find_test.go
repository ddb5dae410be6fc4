package secret

import "testing"

// Neither error is made: a secret that shows, and an ordinary value that is Hidden in all that a server says. What
// stays of a text in which a server repeats the value is in want.
func TestWhatIsMasked(t *testing.T) {
	const all = Hidden
	tests := []struct{ name, value, want string }{
		// By the name, whatever the value looks like.
		{"DB_PASSWORD", "production", all},
		{"password", "12345678", all},
		{"PGPASSWORD", "abc", all},
		{"API_KEY", "letmein", all},
		{"apiKey", "letmein", all},
		{"OPENAI_APIKEY", "letmein", all},
		{"GITHUB_TOKEN", "my-token", all},
		{"CLIENT_SECRET", "dev", all},
		{"SMTP_PASS", "hunter2", all},
		{"DB_PWD", "hunter2", all},
		{"MYSQL_PWD", "hunter2", all},
		{"X-Api-Key", "letmein", all},
		{"Cookie", "theme=dark", all},
		{"Authorization", "Bearer hunter2", all},
		{"AWS_CREDENTIALS", "letmein", all},
		{"PRIVATE_KEY", "letmein", all},
		{"SESSION", "k3jh5", all},
		{"ACCESS_TOKENS", "one,two", all},

		// By the look, whatever the name.
		{"EXTRA", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", all},
		{"EXTRA", "sk-ant-api03-abcDEF123456abcDEF123456", all},
		{"EXTRA", "AKIAIOSFODNN7EXAMPLE", all},
		{"EXTRA", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", all},
		{"EXTRA", "550e8400-e29b-41d4-a716-446655440000", all},
		{"EXTRA", "5d41402abc4b2a76b9719d911017c592", all},
		{"EXTRA", "8f14e45fceea167a", all},
		{"EXTRA", "aZ3kP9qLw2Xv", all},
		{"EXTRA", "qWeRtYuIoPaSdFgHjKlZ", all},
		{"EXTRA", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", all},
		{"EXTRA", "Tr0ub4dor&3", all},
		{"EXTRA", "xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx", all},
		{"EXTRA", "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY", all},
		{"EXTRA", "k3jh5lk2j3h4lk5j2h3", all},

		// Only the part of it that is one.
		{"DATABASE_URL", "postgres://app:hunter2@db.example.com/stock", "postgres://app:***@db.example.com/stock"},
		{"REMOTE", "https://abc123@git.example.com/x.git", "https://***@git.example.com/x.git"},
		{"CONN", "Server=db;User=app;Password=hunter2;", "Server=db;User=app;Password=***;"},
		{"CONN", "app:hunter2@tcp(db:3306)/stock", "app:***@tcp(db:3306)/stock"},
		{"OPENAPI_HEADERS", `{"Authorization": "Bearer hunter2", "Accept": "text/html"}`, `{"Authorization": "Bearer ***", "Accept": "text/html"}`},
		{"HOOK", "https://hooks.example.com/services/T012AB3CD/aZ3kP9qLw2XvB7nM", "https://hooks.example.com/services/T012AB3CD/***"},
		{"ENDPOINT", "https://example.com/mcp?key=letmein&mode=full", "https://example.com/mcp?key=***&mode=full"},

		// What is said about a secret is none.
		{"MAX_TOKENS", "25000", "25000"},
		{"MODEL_TOKENS", "production", "production"},
		{"KEY_FILE", "/etc/ssl/private/server.key", "/etc/ssl/private/server.key"},
		{"TOKEN_URL", "https://login.example.com/oauth2/token", "https://login.example.com/oauth2/token"},
		{"AUTH_MODE", "production", "production"},
		{"AUTH", "production", "production"},
		{"SESSION_TIMEOUT", "360000", "360000"},
		{"XDG_SESSION_CLASS", "production", "production"},
		{"TOKENIZERS_PARALLELISM", "false", "false"},
		{"SSH_AUTH_SOCK", "/run/user/1000/keyring/ssh", "/run/user/1000/keyring/ssh"},
		{"USE_API_KEY", "true", "true"},
		{"AUTHOR", "Jane Austen", "Jane Austen"},
		{"KEYBOARD_LAYOUT", "international", "international"},
		{"AWS_ACCESS_KEY_ID", "production", "production"},
		{"PWD", "/home/jane/stock", "/home/jane/stock"},
		{"OLDPWD", "/home/jane", "/home/jane"},
	}
	// Ordinary words, numbers, paths and addresses.
	for _, plain := range []string{
		"production", "development", "ProductionDatabase", "MyVeryLongClassNameForTheServer", "JiraMcpServerIO", "modelcontextprotocol",
		"my-company-workspace", "my_database_name", "Engineering Team 2024", "read-only", "info,debug,warning", "information",
		"12345678", "-17.250000", "20240718", "2024-11-05", "2024-11-05T10:00:00Z", "192.168.10.20:5432", "127.0.0.1:80800",
		"/var/lib/stock/data", "~/projects/tenon", "./data/stock.sqlite", `C:\Users\jane\data`, "/nix/store/9krlzvny65gdc8s7kpb6lkx8cd02c25b-foo", "data/cache/prod2/items.db",
		"https://api.example.com/v1", "http://localhost:8080/mcp?mode=full", "file:///srv/data", "postgres://db.example.com/stock", "redis://localhost:6379/0",
		"gpt-4o-mini-2024-07-18", "claude-sonnet-4-5-20250929", "claude-3-5-sonnet-20241022", "node20-alpine3.18", "1.2.3-beta.4", "v18.17.0-linux-x64", "us-east-1",
		"en_US.UTF-8", "America/New_York", "application/json", "@modelcontextprotocol/server-filesystem", "--max-old-space-size=4096", "user@example.com",
		"git@github.com:tenon-sdk/tenon.git", "postgres.example.com", "SELECT 1 FROM stock", "org.example.stock.Main", "stock2024report", "UTF-8 and Base64EncodedText",
	} {
		tests = append(tests, struct{ name, value, want string }{"SETTING", plain, plain})
	}
	for _, tt := range tests {
		m := NewMasker(secretsOf(tt.name, tt.value))
		if got := m.Hide("it is " + tt.value + " now"); got != "it is "+tt.want+" now" {
			t.Errorf("%s=%s: %s", tt.name, tt.value, got)
		}
	}
}

// A word about a secret in a name says that the value is none, each of them.
// fault F18
func TestNamesAboutSecrets(t *testing.T) {
	for _, word := range aboutWords {
		for _, name := range []string{"API_KEY_" + word, word + "-token", "secret." + word} {
			if namesSecret(name) != saysNothing {
				t.Errorf("%s names a secret", name)
			}
		}
	}
	if got := secretsOf("AUTH_TOKEN_MODE", "rotating"); len(got) != 0 {
		t.Errorf("a mode is a secret: %q", got)
	}
	if namesSecret("API_KEY_MODEL") != saysSecret {
		t.Error("a longer word counts as the shorter one")
	}
}
