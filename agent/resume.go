package agent

import (
	"fmt"

	"github.com/google/uuid"
)

// Resume selects the stored conversation that a session continues. An engine that does not store
// conversations refuses it with an [UnsupportedError].
type Resume struct {
	// ID is the UUID of the session.
	ID string
	// Latest selects the most recent session of the directory, without ID.
	Latest bool
	// Fork continues in a new session, with Options.SessionID or a new ID, and leaves the stored one
	// unchanged.
	Fork bool
	// At is the UUID of the last message to keep. It requires ID. Empty keeps all messages.
	At string
	// DropsTurn is the UUID of the input whose turn At drops. If more than this turn follows At, the session
	// is not resumed. It requires At. Empty means no check.
	DropsTurn string
}

// keepsID reports whether the session keeps the stored ID.
func (r *Resume) keepsID() bool { return (r.ID != "" || r.Latest) && !r.Fork }

func (o *Options) checkResume() error {
	r := &o.Resume
	for _, id := range []struct{ field, value string }{{"ID", r.ID}, {"At", r.At}, {"DropsTurn", r.DropsTurn}} {
		if id.value != "" && uuid.Validate(id.value) != nil {
			return &OptionError{"Resume." + id.field, fmt.Sprintf("is %q", id.value), "set a UUID"}
		}
	}
	switch {
	case r.ID != "" && r.Latest:
		return &OptionError{"Resume.Latest", "is set together with ID", "set only one of them"}
	case r.Fork && r.ID == "" && !r.Latest:
		return &OptionError{"Resume.Fork", "is set without a session to fork", "set ID or Latest"}
	case r.At != "" && r.ID == "":
		return &OptionError{"Resume.At", "is set without ID", "set ID"}
	case r.DropsTurn != "" && r.At == "":
		return &OptionError{"Resume.DropsTurn", "is set without At", "set At"}
	case r.keepsID() && o.SessionID != "" && o.SessionID != r.ID:
		return &OptionError{"SessionID", "is set for a session that keeps its own", "leave it empty, or set Resume.Fork"}
	}
	return nil
}
