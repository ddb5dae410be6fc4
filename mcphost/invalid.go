package mcphost

import "errors"

// Invalid is a configured server that cannot be used, because its configuration is faulty. A host lists it with the
// status failed and the reason, and never connects it. It keeps the name: no other server runs under it.
type Invalid struct {
	// Transport is the transport that the configuration names, if it is known.
	Transport string
	// Err says what is wrong with the configuration. It must hold no secrets.
	Err error
	Common
}

func (c Invalid) transport() string { return c.Transport }

func (c Invalid) validate() error {
	if c.Err == nil {
		return errors.New("the configuration cannot be used")
	}
	return c.Err
}
