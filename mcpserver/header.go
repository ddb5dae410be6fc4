package mcpserver

import "encoding/json"

// A HeaderParam is a property that clients mirror into an HTTP header.
type HeaderParam struct {
	Name string   // the header's name without the Mcp-Param- prefix
	Path []string // property names from the root of the arguments
	Type string   // string, integer or boolean
}

// HeaderParams lists the header parameters of an input schema.
func HeaderParams(schema json.RawMessage) ([]HeaderParam, error) { return nil, errTodo }

// HeaderParams lists the header parameters of a registered tool.
func (s *Server) HeaderParams(tool string) []HeaderParam { return nil }
