package toolsearch

import "strings"

// An action is the set of what a tool does, one bit for each kind.
type action uint8

// actionGroups has the verbs of each kind in a line. They begin the names of tools and requests. A
// question asks for a tool that reads.
const actionGroups = `get list show read fetch retrieve view find search query lookup describe check inspect display count browse explain look tell see watch monitor which who whom whose what where when how
create add new make insert generate write register build compose draft upload append
update edit change modify set rename move patch assign adjust mark toggle replace configure fix correct swap
delete remove erase drop destroy clear uninstall purge unlink discard unassign detach
run start execute trigger deploy launch apply restart invoke resume
stop cancel abort terminate pause halt disable close
send post reply share publish notify invite`

// actions has the kinds by the stem of the verb.
var actions = func() map[string]action {
	m := map[string]action{}
	kind := action(1)
	for line := range strings.SplitSeq(actionGroups, "\n") {
		for w := range strings.FieldsSeq(line) {
			m[stem(w)] |= kind
		}
		kind <<= 1
	}
	return m
}()

// actionOf returns what a tool does, by the verbs in its name.
func actionOf(name string) action {
	var a action
	tokenize(name, func(w string, whole bool) bool {
		if !whole {
			a |= actions[stem(w)]
		}
		return true
	})
	return a
}

// asked returns what a request asks for, by its first verb.
func asked(text string) action {
	var a action
	tokenize(text, func(w string, whole bool) bool {
		if whole {
			return true
		}
		a = actions[stem(w)]
		for _, meant := range translations[w] {
			a |= actions[meant]
		}
		return a == 0
	})
	return a
}

// fit returns a factor for the score of a tool that does a. It is 1 if either action is unknown.
func (a action) fit(asked action) float32 {
	switch {
	case a == 0 || asked == 0:
		return 1
	case a&asked != 0:
		return 1 + agreement
	}
	return 1 - agreement
}
