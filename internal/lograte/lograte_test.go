package lograte

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
)

func TestLoggerBoundsRecordsOfOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := New(slog.New(slog.NewTextHandler(&out, nil)))
		for range 2 * burst {
			log.Warn("often")
		}
		log.Error("once")
		if n := strings.Count(out.String(), "often"); n != burst || !strings.Contains(out.String(), "once") {
			t.Errorf("%d records: %s", n, out.String())
		}
	})
}
