package agent

import (
	"fmt"
	"regexp"
	"strconv"
)

// A ToolSearch says whether the model is shown the definitions of all tools from the start, or only
// their names, with a tool that searches and loads them. The empty string leaves it to the
// environment variable ENABLE_TOOL_SEARCH, whose values are the same; without that it is on from where it
// saves: the definitions would take more than [ToolSearchTokens], or servers are still connecting when
// the first turn begins, so that nobody knows how many tools there will be.
//
// Tools that ask for it (anthropic/alwaysLoad in their _meta) and those of servers that are
// configured so ([mcphost.Common]) are always shown. Models that do not know tool references get all
// definitions, too.
type ToolSearch string

// ToolSearchTokens is how many tokens of definitions, about four bytes each, a prompt holds before the
// native engine withholds them, where nothing is set. Below it a search would cost more than the
// definitions: its own definition, the list of names and one more request to the model.
const ToolSearchTokens = 5000

// The settings of the tool search. [ToolSearchAbove] makes more.
const (
	ToolSearchOn  ToolSearch = "true"
	ToolSearchOff ToolSearch = "false"
	// ToolSearchAuto searches when the definitions would take more than 10 % of the model's context window.
	ToolSearchAuto ToolSearch = "auto"
)

// ToolSearchAbove searches when the definitions would take more than so many percent of the model's
// context window. 0 is [ToolSearchOn], 100 is [ToolSearchOff].
func ToolSearchAbove(percent int) ToolSearch { return ToolSearch("auto:" + strconv.Itoa(percent)) }

var toolSearchForm = regexp.MustCompile(`^(true|1|false|0|auto(:(\d\d?|100))?)?$`)

// check refuses what is none of the settings.
func (t ToolSearch) check() error {
	if !toolSearchForm.MatchString(string(t)) {
		return &OptionError{"ToolSearch", fmt.Sprintf("is %q", t), `set "true", "false", "auto", "auto:N" with a percentage, or nothing`}
	}
	return nil
}
