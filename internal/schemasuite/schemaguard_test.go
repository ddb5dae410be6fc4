package schemasuite_test

import (
	"encoding/json"
	"testing"

	"github.com/tenon-sdk/tenon/internal/schemaguard"
	"github.com/tenon-sdk/tenon/internal/schemasuite"
)

// T02 T10 T11: what validates arguments and structured content, against the
// official cases of the three dialects.
func TestSchemaguard(t *testing.T) {
	schemasuite.Run(t, func(schema json.RawMessage) (func(json.RawMessage) error, error) {
		s, err := schemaguard.New(schema)
		if err != nil {
			return nil, err
		}
		return func(value json.RawMessage) error { return s.Validate(value, schemaguard.Limits{}) }, nil
	})
}
