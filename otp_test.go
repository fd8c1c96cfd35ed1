package parley

import (
	"fmt"
	"testing"
	"time"
)

// TestLinkTruthTable tries a link in every state, in time and late, by either sender, with the prompt
// as it was given and edited: a link is approved in one of these cases.
func TestLinkTruthTable(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)
	const right, other = ContactID("6281234567890@c.us"), ContactID("6289876543210@c.us")
	link := OTPLink{ID: "otl_1", Contact: right, OnSuccess: "http://a.example/ok", OnFailure: "http://a.example/no",
		CreatedAt: made, ExpiresAt: made.Add(5 * time.Minute)}

	approved := LinkOutcome{ReplySuccess, OTPApproved, "", link.OnSuccess}
	wrongSender := LinkOutcome{ReplyFailed, OTPFailed, WrongSender, link.OnFailure}
	edited := LinkOutcome{ReplyFailed, OTPFailed, EditedPrompt, link.OnFailure}
	expires := LinkOutcome{ReplyExpired, OTPExpired, "", ""}
	expired := LinkOutcome{Reply: ReplyExpired}
	ended := LinkOutcome{Reply: ReplyFailed}

	approvals := 0
	for _, status := range []OTPStatus{OTPStatusPending, OTPStatusApproved, OTPStatusInvalid, OTPStatusExpired, OTPStatusLocked} {
		for _, late := range []bool{false, true} {
			for _, from := range []ContactID{right, other} {
				for _, isEdited := range []bool{false, true} {
					name := fmt.Sprintf("%s late=%t from=%s edited=%t", status, late, from, isEdited)
					l := link
					l.Status = status
					at := l.ExpiresAt.Add(-time.Millisecond)
					if late {
						at = l.ExpiresAt
					}
					want, wantStatus, tries, others := ended, status, 0, 0
					switch {
					case status == OTPStatusExpired:
						want = expired
					case status != OTPStatusPending:
					case late:
						want, wantStatus = expires, OTPStatusExpired
					case from == other:
						want, others = wrongSender, 1
					case isEdited:
						want, tries = edited, 1
					default:
						want, wantStatus = approved, OTPStatusApproved
					}
					after, got := l.Try(LinkTry{From: from, Edited: isEdited, At: at})
					if got != want {
						t.Errorf("%s: %+v, want %+v", name, got, want)
					}
					if after.Status != wantStatus || after.Tries != tries || after.Others != others {
						t.Errorf("%s: status %s, tries %d, others %d; want %s, %d, %d",
							name, after.Status, after.Tries, after.Others, wantStatus, tries, others)
					}
					if got.Event == OTPApproved {
						approvals++
					}
				}
			}
		}
	}
	if approvals != 1 {
		t.Errorf("%d of 40 cases approve, want 1", approvals)
	}
}

func TestLinkIsLockedByTheRightContactAlone(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := OTPLink{Contact: "6281234567890@c.us", ExpiresAt: now.Add(time.Minute), OnFailure: "https://a.example/no"}
	for i := range 100 {
		var o LinkOutcome
		l, o = l.Try(LinkTry{From: "6289876543210@c.us", Edited: true, At: now})
		if reported := o.Event == OTPFailed && o.Callback != ""; reported != (i < 5) || o.Reply != ReplyFailed {
			t.Errorf("try %d by another: %+v", i, o)
		}
	}
	if l.Status != OTPStatusPending || l.Others != 100 || l.Tries != 0 {
		t.Fatalf("after 100 tries by another: %s, %d and %d", l.Status, l.Others, l.Tries)
	}
	for i := 1; i <= MaxOTPTries; i++ {
		if l.Status != OTPStatusPending {
			t.Fatalf("%s before try %d", l.Status, i)
		}
		var o LinkOutcome
		if l, o = l.Try(LinkTry{From: l.Contact, Edited: true, At: now}); o.Reason != EditedPrompt || o.Event != OTPFailed {
			t.Errorf("try %d: %+v", i, o)
		}
	}
	if l.Status != OTPStatusLocked {
		t.Fatalf("after %d wrong tries it is %s", MaxOTPTries, l.Status)
	}
	if l, o := l.Try(LinkTry{From: l.Contact, At: now}); l.Status != OTPStatusLocked || o != (LinkOutcome{Reply: ReplyFailed}) {
		t.Errorf("the right prompt on a locked link: %s, %+v", l.Status, o)
	}
}

func TestLinkMessageText(t *testing.T) {
	t.Parallel()
	m := LinkMessages{Prompt: "p", Success: "s", Failed: "f", Expired: "e"}
	for answer, want := range map[LinkReply]string{ReplySuccess: "s", ReplyFailed: "f", ReplyExpired: "e"} {
		if got := m.Text(answer); got != want {
			t.Errorf("answer %d is %q, want %q", answer, got, want)
		}
	}
}

// TestHiddenNumberNeverLogsIn fails for any link: nobody knows who sent it.
func TestHiddenNumberNeverLogsIn(t *testing.T) {
	now := time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)
	hidden := NewHiddenContactID("123456789012345")
	for _, contact := range []ContactID{"6281234567890@c.us", hidden} {
		link := OTPLink{Contact: contact, Status: OTPStatusPending, OnFailure: "http://a.example/no", ExpiresAt: now.Add(time.Minute)}
		after, got := link.Try(LinkTry{From: hidden, At: now})
		if want := (LinkOutcome{ReplyFailed, OTPFailed, NumberHidden, link.OnFailure}); got != want || after.Status != OTPStatusPending {
			t.Errorf("a link for %s: %+v", contact, got)
		}
	}
}
