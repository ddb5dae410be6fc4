package agent

import "fmt"

// HistoryUsage is what a conversation has used in earlier sessions.
type HistoryUsage struct {
	// Turns is how often the model was asked in the turn that the history breaks off in. The session's
	// first turn counts them towards Options.MaxTurns. It must not be negative.
	Turns int
	// CostUSD is the [Result.TotalCostUSD] of the latest result. It counts towards Options.MaxBudgetUSD.
	// It must not be negative.
	CostUSD float64
}

// A HistoryRepair is something that an engine had to change about [Options.History] so that the
// model can be sent it. The first turn reports them after its [SystemInit], all in one *System
// message of subtype "informational" with the tag [TagHistoryRepaired]; [System.Decode] reads them
// from its field "repairs". At most the first 100 are listed; "count" is how many there were.
type HistoryRepair struct {
	// Index is that of the message in Options.History.
	Index int `json:"index"`
	// Kind is one of the Repair constants; the set is open.
	Kind string `json:"kind"`
	// Detail says what was wrong and what became of it.
	Detail string `json:"detail"`
}

// TagHistoryRepaired is the tag of the message that reports what was changed about [Options.History].
const TagHistoryRepaired = "history_repaired"

// The kinds of [HistoryRepair].
const (
	// RepairUnanswered is a tool call without a result: it was answered with an error.
	RepairUnanswered = "unanswered_call"
	// RepairOrphan is a tool result without its call: it was left out.
	RepairOrphan = "orphaned_result"
	// RepairDuplicate is a second result of one call, or a message that is there twice: it was left out.
	RepairDuplicate = "duplicate"
	// RepairMoved is a result that did not stand after its call: it was moved there.
	RepairMoved = "moved_result"
	// RepairRenamed is an ID or a name that the API refuses, or an ID that two calls have: it was changed.
	RepairRenamed = "renamed"
	// RepairEmpty is a text or a message without anything in it: it was left out.
	RepairEmpty = "empty"
	// RepairThought is a thought that the API would not take back: without a signature, or at the end of a message. It was left out.
	RepairThought = "thought"
	// RepairBeginning is a conversation that began with the model's words: a note was put before them.
	RepairBeginning = "beginning"
	// RepairMalformed is a message, a block or a field of a form that the API refuses: it was left out, or mended as the detail says.
	RepairMalformed = "malformed"
	// RepairMedia is an image or a document that the API refuses: an image was scaled down, or a note stands for it.
	RepairMedia = "media"
	// RepairReference is a reference to a tool that there is not any more: it was kept, and the tool is described as not available, or words stand for it.
	RepairReference = "tool_reference"
	// RepairRefused is a block that the API refused although nothing is known to be wrong with it: words stand for it.
	RepairRefused = "refused"
)

// checkHistory refuses only what is no message at all; everything else can be repaired.
func (o *Options) checkHistory() error {
	for i, m := range o.History {
		if isNilMessage(m) {
			return &OptionError{fmt.Sprintf("History[%d]", i), "is nil", "leave it out, or set a message that DecodeMessage has read"}
		}
	}
	if len(o.History) > 0 && o.Resume != (Resume{}) {
		return &OptionError{"History", "is set together with Resume", "set only one of them"}
	}
	return nil
}

func isNilMessage(m Message) bool {
	switch m := m.(type) {
	case nil:
		return true
	case *SystemInit:
		return m == nil
	case *System:
		return m == nil
	case *Assistant:
		return m == nil
	case *User:
		return m == nil
	case *StreamEvent:
		return m == nil
	case *Result:
		return m == nil
	case *Unknown:
		return m == nil
	}
	return false
}
