package agent

import "fmt"

// HistoryUsage is the usage of a conversation in earlier sessions.
type HistoryUsage struct {
	// Turns is the number of model requests of the turn in which the history ends. They count towards
	// Options.MaxTurns in the session's first turn.
	Turns int
	// CostUSD is the latest [Result.TotalCostUSD]. It counts towards Options.MaxBudgetUSD.
	CostUSD float64
}

// A HistoryRepair is a change that an engine made to [Options.History] so that the API accepts it. The
// first turn reports the repairs after its [SystemInit] in a *[System] message of the subtype
// "informational" with the tag [TagHistoryRepaired]. The field "repairs" lists at most 100 of them, and
// "count" is their number; see [System.Decode].
type HistoryRepair struct {
	// Index is the index of the message in Options.History.
	Index int `json:"index"`
	// Kind is one of the Repair constants; the set is open.
	Kind string `json:"kind"`
	// Detail describes the fault and its repair.
	Detail string `json:"detail"`
}

// TagHistoryRepaired is the tag of the message that reports the repairs of [Options.History].
const TagHistoryRepaired = "history_repaired"

// The kinds of [HistoryRepair].
const (
	// RepairUnanswered is a tool call without a result: an error result was added.
	RepairUnanswered = "unanswered_call"
	// RepairOrphan is a tool result without its call: it was left out.
	RepairOrphan = "orphaned_result"
	// RepairDuplicate is a second result of a call, or a repeated message: it was left out.
	RepairDuplicate = "duplicate"
	// RepairMoved is a result that did not follow its call: it was moved there.
	RepairMoved = "moved_result"
	// RepairRenamed is an invalid ID or name, or an ID of two calls: it was changed.
	RepairRenamed = "renamed"
	// RepairEmpty is an empty text or message: it was left out.
	RepairEmpty = "empty"
	// RepairThought is reasoning without a signature or at the end of a message: it was left out.
	RepairThought = "thought"
	// RepairBeginning is a conversation that began with the model: a note was put before.
	RepairBeginning = "beginning"
	// RepairMalformed is an invalid message, block or field: it was left out or changed.
	RepairMalformed = "malformed"
	// RepairMedia is an invalid image or document: it was scaled down or replaced by a note.
	RepairMedia = "media"
	// RepairReference is a reference to a missing tool: the tool is described as not available, or a text
	// replaces the reference.
	RepairReference = "tool_reference"
	// RepairRefused is a block that the API refused for an unknown reason: a text replaces it.
	RepairRefused = "refused"
)

func (o *Options) checkHistory() error {
	for i, m := range o.History {
		if isNil(m) {
			return &OptionError{fmt.Sprintf("History[%d]", i), "is nil", "leave it out, or set a message that DecodeMessage has read"}
		}
	}
	if len(o.History) > 0 && o.Resume != (Resume{}) {
		return &OptionError{"History", "is set together with Resume", "set only one of them"}
	}
	return nil
}
