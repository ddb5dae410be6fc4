package native

import "os"

// environ looks variables up in an overlay and then in the process environment.
type environ map[string]string

func (e environ) get(name string) string {
	if v, ok := e[name]; ok {
		return v
	}
	return os.Getenv(name)
}

// lookup looks a variable up, empty or not.
func (e environ) lookup(name string) (string, bool) {
	if v, ok := e[name]; ok {
		return v, true
	}
	return os.LookupEnv(name)
}
