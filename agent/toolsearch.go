package agent

import (
	"fmt"
	"regexp"
	"strconv"
)

// A ToolSearch configures whether the model receives all tool definitions at once, or only their names
// and a tool that searches and loads definitions. The empty string means the environment variable
// ENABLE_TOOL_SEARCH, which has the same values. Without the variable, tool search is on if the
// definitions exceed [ToolSearchTokens] or servers are still connecting when the first turn begins.
//
// Tools with anthropic/alwaysLoad in their _meta, and tools of servers with AlwaysLoad in
// [mcphost.Common], are always loaded. Models without tool references receive all definitions.
type ToolSearch string

// ToolSearchTokens is the size of the definitions, in tokens of about four bytes, from which the native
// engine uses tool search by default. Below it, the search tool, the list of names and the additional
// model request cost more than the definitions.
const ToolSearchTokens = 5000

// The settings of tool search. [ToolSearchAbove] returns further ones.
const (
	ToolSearchOn  ToolSearch = "true"
	ToolSearchOff ToolSearch = "false"
	// ToolSearchAuto is ToolSearchAbove(10).
	ToolSearchAuto ToolSearch = "auto"
)

// ToolSearchAbove turns tool search on if the definitions exceed a percentage of the model's context
// window. 0 is [ToolSearchOn], 100 is [ToolSearchOff].
func ToolSearchAbove(percent int) ToolSearch { return ToolSearch("auto:" + strconv.Itoa(percent)) }

var toolSearchForm = regexp.MustCompile(`^(true|1|false|0|auto(:(\d\d?|100))?)?$`)

func (t ToolSearch) check() error {
	if !toolSearchForm.MatchString(string(t)) {
		return &OptionError{"ToolSearch", fmt.Sprintf("is %q", t), `set "true", "false", "auto", "auto:N" with a percentage, or nothing`}
	}
	return nil
}
