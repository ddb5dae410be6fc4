package toolschema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// modelName returns the name for the model.
func modelName(t Tool, limit int, report *[]Mend) (string, bool) {
	wanted := t.FullName
	switch {
	case wanted != "":
	case t.Name == "":
		return "", false
	case t.Server != "":
		wanted = toolname.Full(t.Server, t.Name)
	default:
		wanted = t.Name
	}
	name := toolname.Normalize(wanted)
	if name != wanted {
		*report = append(*report, Mend{"name", "name", fmt.Sprintf("%q is written as %q", shorten(wanted), shorten(name))})
	}
	if len(name) <= limit {
		return name, true
	}
	long := len(name)
	if t.Server != "" && t.Name != "" {
		name = toolname.Fit(t.Server, t.Name, limit)
	}
	if len(name) > limit { // no server, or a full name that has nothing to do with it
		sum := sha256.Sum256([]byte(wanted))
		name = name[:limit-9] + "_" + hex.EncodeToString(sum[:])[:8]
	}
	*report = append(*report, Mend{"name", "name", fmt.Sprintf("has %d characters and is cut to %d", long, limit)})
	return name, true
}
