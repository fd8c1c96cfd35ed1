package store

import (
	"strings"
	"testing"

	"parley"
)

// TestRecordsInSQL holds the list of kinds in the statements to the rule.
func TestRecordsInSQL(t *testing.T) {
	for _, k := range []parley.Kind{parley.KindText, parley.KindImage, parley.KindVideo, parley.KindFile, parley.KindVoice, parley.KindLocation,
		parley.KindPoll, parley.KindReaction, parley.KindSeen, parley.KindDelete, parley.KindStar, parley.KindArchive} {
		if got := strings.Contains(isRecord, "'"+string(k)+"'"); got != k.IsRecord() {
			t.Errorf("%s is a record: %t in the statements, %t by the rule", k, got, k.IsRecord())
		}
	}
}
