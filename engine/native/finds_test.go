package native

import (
	"fmt"
	"testing"
	"testing/synctest"
)

// What TestHistory has found once, each in a conversation of its own.
func TestHistoryFinds(t *testing.T) {
	for seed, what := range map[uint64]string{
		6787: "a refusal takes out an answer in which nothing was said, too, and names it",
		8247: "the thoughts of an answer that broke off are those of the model that was asked for it, and not of its fallback",
	} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Log(what)
			synctest.Test(t, func(t *testing.T) { goOn(t, seed) })
		})
	}
}
