package agent

import (
	"fmt"

	"github.com/google/uuid"
)

// Resume says which stored conversation a session goes on with. Not every engine stores
// conversations; one that does not refuses it with an [UnsupportedError].
type Resume struct {
	// ID is the session to go on with, a UUID. It excludes Latest.
	ID string
	// Latest goes on with the most recent session of the directory.
	Latest bool
	// Fork leaves the stored session as it is and goes on in a new one, under Options.SessionID or
	// an ID of its own.
	Fork bool
	// At is the UUID of the last message that is kept. It needs ID. Empty keeps all.
	At string
	// DropsTurn, with At, is the UUID of the input whose turn is dropped: if more than that turn
	// follows At, the session is not resumed. Empty checks nothing.
	DropsTurn string
}

// stays reports whether the session keeps its ID.
func (r *Resume) stays() bool { return (r.ID != "" || r.Latest) && !r.Fork }

func (o *Options) checkResume() error {
	r := &o.Resume
	for _, id := range []struct{ field, value string }{{"ID", r.ID}, {"At", r.At}, {"DropsTurn", r.DropsTurn}} {
		if id.value == "" {
			continue
		}
		if _, err := uuid.Parse(id.value); err != nil {
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
	case r.stays() && o.SessionID != "" && o.SessionID != r.ID:
		return &OptionError{"SessionID", "is set for a session that keeps its own", "leave it empty, or set Resume.Fork"}
	}
	return nil
}
