package agent

import (
	"errors"
	"testing"
)

func TestResumeDecidesTheSessionID(t *testing.T) {
	const id, other = "3f0c1f6e-8f4b-4a53-9a0e-1d1f6f0c9f10", "b7c1f6e0-8f4b-4a53-9a0e-1d1f6f0c9f11"
	tests := []struct {
		name  string
		o     Options
		want  string // the session's ID; "new" for one that is made up, "-" for none known
		field string // of the error
	}{
		{"nothing", Options{}, "new", ""},
		{"resumed", Options{Resume: Resume{ID: id}}, id, ""},
		{"resumed under its own name", Options{SessionID: id, Resume: Resume{ID: id}}, id, ""},
		{"the latest is not known yet", Options{Resume: Resume{Latest: true}}, "-", ""},
		{"forked", Options{Resume: Resume{ID: id, Fork: true}}, "new", ""},
		{"forked under a name", Options{SessionID: other, Resume: Resume{ID: id, Fork: true}}, other, ""},
		{"cut", Options{Resume: Resume{ID: id, At: other, DropsTurn: id}}, id, ""},
		{"no uuid", Options{Resume: Resume{ID: "x"}}, "", "Resume.ID"},
		{"two at once", Options{Resume: Resume{ID: id, Latest: true}}, "", "Resume.Latest"},
		{"a fork of nothing", Options{Resume: Resume{Fork: true}}, "", "Resume.Fork"},
		{"cut of nothing", Options{Resume: Resume{Latest: true, At: other}}, "", "Resume.At"},
		{"guard of no cut", Options{Resume: Resume{ID: id, DropsTurn: other}}, "", "Resume.DropsTurn"},
		{"another name", Options{SessionID: other, Resume: Resume{ID: id}}, "", "SessionID"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.o.withDefaults()
			var oe *OptionError
			if errors.As(err, &oe) || err != nil {
				if oe == nil || oe.Field != tt.field {
					t.Fatalf("got %v, want an OptionError about %q", err, tt.field)
				}
				return
			}
			switch {
			case tt.field != "":
				t.Errorf("accepted, want an error about %s", tt.field)
			case tt.want == "-" && got.SessionID != "", tt.want == "new" && (got.SessionID == "" || got.SessionID == id), tt.want != "-" && tt.want != "new" && got.SessionID != tt.want:
				t.Errorf("SessionID is %q, want %s", got.SessionID, tt.want)
			}
		})
	}
}
