package sandbox

import (
	"errors"
	"fmt"
	"testing"

	"parley"
)

// TestChatOfManyPhones makes sure that a phone shows its own chat alone, newest first, in pages.
func TestChatOfManyPhones(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		for i := range 5 {
			for _, number := range []string{"6281100000001", "6281100000002"} {
				must(t, errors.Join(d.send(text(number, fmt.Sprintf("%s %d", number, i)))...))
			}
		}
		var got []string
		for before := Cursor(""); ; {
			page, err := d.network.Chat(t.Context(), "test", "6281100000001", "", before, 2)
			must(t, err)
			for _, m := range page.Messages {
				got = append(got, m.Body)
			}
			if before = page.Next; before == "" {
				break
			}
		}
		if want := "[6281100000001 4 6281100000001 3 6281100000001 2 6281100000001 1 6281100000001 0]"; fmt.Sprint(got) != want {
			t.Errorf("the phone shows %q", got)
		}
		chats, err := d.network.Chats(t.Context(), "test", "6281100000002")
		must(t, err)
		if len(chats) != 1 || chats[0].Unread != 5 || chats[0].Last.Body != "6281100000002 4" {
			t.Errorf("its chats are %+v", chats)
		}
	})
}

// TestChatAsksForNothing makes sure that what is not there is said not to be.
func TestChatAsksForNothing(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		const number = "6281100000001"
		if _, err := d.network.Message(t.Context(), "test", number, "3EB0NOTHING"); !errors.Is(err, parley.ErrNotFound) {
			t.Errorf("a message that is not there: %v", err)
		}
		if _, err := d.network.Chat(t.Context(), "test", number, "", "nonsense", 2); parley.ToCode(err) != parley.Invalid {
			t.Errorf("an invalid cursor: %v", err)
		}
		chats, err := d.network.Chats(t.Context(), "test", number)
		must(t, err)
		if len(chats) != 0 {
			t.Errorf("a phone without messages has chats: %+v", chats)
		}
	})
}
