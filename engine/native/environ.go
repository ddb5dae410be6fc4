package native

import "github.com/tenon-sdk/tenon/engine/internal/kit"

// environ looks variables up in an overlay and then in the process environment.
type environ map[string]string

func (e environ) get(name string) string {
	v, _ := e.lookup(name)
	return v
}

// lookup looks a variable up, empty or not.
func (e environ) lookup(name string) (string, bool) { return kit.Lookup(e)(name) }
