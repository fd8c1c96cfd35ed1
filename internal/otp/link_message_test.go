package otp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/store"
)

func TestLinkIsApprovedOnce(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	l := e.make(e.request())
	m := e.codeText(ayu, "  "+strings.ToUpper(e.promptOf(l))+"\n")
	e.answered(e.receive(m), ayu, filled(l, parley.ReplySuccess))
	e.same("status", e.stored(l).Status, parley.OTPStatusApproved)
	if e.stored(l).EndedAt.IsZero() {
		t.Error("an approved link has no end")
	}
	e.same("events", e.otpEvents(), []string{fmt.Sprintf(`otp.approved{"id":"%s","contact_id":"%s"}`, l.ID, ayu)})
	e.same("callbacks", e.calls(), []string{l.OnSuccess})

	e.wantsMasked(m, l)

	// Used again it fails, and only the sender gets a reply.
	e.answered(e.says(ayu, e.promptOf(l)), ayu, filled(l, parley.ReplyFailed))
	e.answered(e.says(budi, e.promptOf(l)), budi, filled(l, parley.ReplyFailed))
	e.same("events", len(e.otpEvents()), 1)
	e.same("callbacks", len(e.calls()), 1)
}

// TestLinkOfAnyPrompt has words around the code that could hold one themselves. The code is found all
// the same, and nothing of it is kept.
func TestLinkOfAnyPrompt(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	prompts := map[string]string{
		"a long word":              strings.Repeat("a", 200) + " ##code##",
		"the longest":              manyLetters(1024-len(" ##code##")) + " ##code##",
		"the longest, without it":  manyLetters(1024),
		"many long words":          strings.TrimSpace(strings.Repeat("Donaudampfschaffahrt ", 48)) + " ##code##",
		"an address":               "https://toko.example/masuk?sesi=" + manyLetters(600) + "&kode=##code##&x=" + manyLetters(300),
		"right after letters":      manyLetters(500) + "##code##",
		"right before letters":     "##code##" + manyLetters(500),
		"between letters":          "abc##code##def",
		"between many letters":     manyLetters(1016)[:508] + "##code##" + manyLetters(1016)[508:],
		"amid names, but apart":    amidNames(" ##code##"),
		"in one letter many times": strings.Repeat("a", 500) + "##code##" + strings.Repeat("b", 500),
		"right after the name":     "##name####code##",
		"twice in a row":           "##code####code##",
	}
	for name, prompt := range prompts {
		r := e.request()
		r.Name = strings.Repeat("n", 60)
		r.Messages = &parley.LinkMessages{Prompt: prompt, Success: "yes", Failed: "no", Expired: "late"}
		l := e.make(r)
		who := parley.ContactID(fmt.Sprintf("62812%08d@c.us", e.said)) // answers to one sender are counted
		e.answered(e.says(who, e.promptOf(l)), who, "no")
		m := e.codeText(ayu, strings.ToLower(e.promptOf(l)))
		e.receive(m)
		e.same(name, e.stored(l).Status, parley.OTPStatusApproved)
		e.wantsMasked(m, l)
	}
}

// wantsMasked demands that nothing of a link's code is kept with a message.
func (e *linkEnv) wantsMasked(m parley.Message, l NewLink) {
	e.Helper()
	kept, err := e.store.Message(e.Context(), m.Channel, m.Ref())
	if err != nil {
		e.Fatal(err)
	}
	if text := kept.Content.Text(); strings.Contains(strings.ToUpper(text), l.Code) || !strings.Contains(text, mask) {
		e.Errorf("history says %q", text)
	}
}

// TestLinkOfTheLongestName has our own prompt name an application that looks like a code itself.
func TestLinkOfTheLongestName(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	for name, r := range map[string]LinkRequest{"given": e.request(), "the channel's": e.request()} {
		if long := manyLetters(60); name == "given" {
			r.Name = long
		} else {
			r.Channel.Name = long
		}
		l := e.make(r)
		e.answered(e.says(ayu, e.promptOf(l)), ayu, filled(l, parley.ReplySuccess))
	}
}

func TestLinkTriesThatFail(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	l := e.make(e.request())
	failed := filled(l, parley.ReplyFailed)
	event := func(reason string) string {
		return fmt.Sprintf(`otp.failed{"id":"%s","contact_id":"%s","reason":"%s"}`, l.ID, ayu, reason)
	}
	e.answered(e.says(budi, e.promptOf(l)), budi, failed)
	e.answered(e.says(ayu, "They asked me to send "+l.Code), ayu, failed)
	caption := e.codeText(ayu, "")
	caption.Content = parley.Image{Caption: e.promptOf(l)}
	e.answered(e.receive(caption), ayu, failed)
	e.same("events", e.otpEvents(), []string{event("wrong_sender"), event("edited_prompt"), event("edited_prompt")})
	e.same("callbacks", e.calls(), []string{l.OnFailure, l.OnFailure, l.OnFailure})
	now := e.stored(l)
	e.same("link", []any{now.Status, now.Tries, now.Others}, []any{parley.OTPStatusPending, 2, 1})

	// None of that used it up.
	e.answered(e.says(ayu, e.promptOf(l)), ayu, filled(l, parley.ReplySuccess))
	e.same("status", e.stored(l).Status, parley.OTPStatusApproved)
}

// TestFiveWrongTriesLockALink has somebody else try too. Of those tries the first five are reported.
func TestFiveWrongTriesLockALink(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	l := e.make(e.request())
	for range 20 {
		e.says(budi, e.promptOf(l))
	}
	for range parley.MaxOTPTries {
		e.same("status", e.stored(l).Status, parley.OTPStatusPending)
		e.says(ayu, l.Code)
	}
	now := e.stored(l)
	e.same("link", []any{now.Status, now.Tries, now.Others}, []any{parley.OTPStatusLocked, 5, 20})
	e.same("callbacks", len(e.calls()), 10)
	e.same("events", len(e.otpEvents()), 10)
	e.says(ayu, e.promptOf(l))
	e.same("status after the right prompt", e.stored(l).Status, parley.OTPStatusLocked)
	e.same("callbacks", len(e.calls()), 10)
}

func TestLinkWithoutCallbacks(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	r := e.request()
	r.OnSuccess, r.OnFailure = "", ""
	l := e.make(r)
	e.says(budi, e.promptOf(l))
	e.says(ayu, e.promptOf(l))
	e.same("events", len(e.otpEvents()), 2)
	e.same("callbacks", len(e.calls()), 0)
}

func TestReplacedLink(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	old, next := e.make(e.request()), e.make(e.request())
	e.answered(e.says(ayu, e.promptOf(old)), ayu, filled(old, parley.ReplyFailed))
	e.same("old one", e.stored(old).Status, parley.OTPStatusInvalid)
	e.same("events", len(e.otpEvents()), 0)
	e.same("callbacks", len(e.calls()), 0)

	// Of several codes in one message the open link counts, and all are masked, in whichever order they
	// are found.
	for n, said := range []string{e.promptOf(old) + " " + e.promptOf(next), "abc" + old.Code + "def, " + next.Code} {
		m := e.codeText(ayu, said)
		e.answered(e.receive(m), ayu, filled(next, parley.ReplyFailed))
		e.same("open one", e.stored(next).Tries, n+1)
		e.wantsMasked(m, old)
		e.wantsMasked(m, next)
	}
}

func TestMessagesThatAreNoTry(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	l := e.make(e.request())

	old := e.codeText(ayu, e.promptOf(l)) // from before the link, as history may be
	old.CreatedAt = l.CreatedAt.Add(-time.Hour)
	e.same("answers to history", len(e.receive(old)), 0)
	kept, err := e.store.Message(t.Context(), "main", old.Ref())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(kept.Content.Text(), l.Code) {
		t.Error("history holds the code of an open link")
	}

	e.channel.Code = "other" // a code counts on its own channel alone
	m := e.codeText(ayu, e.promptOf(l))
	e.same("answers on another channel", len(e.receive(m)), 0)
	if kept, err = e.store.Message(t.Context(), "other", m.Ref()); err != nil {
		t.Fatal(err)
	}
	e.same("what is kept of a text without a known code", kept.Content.Text(), e.promptOf(l))
	e.same("status", e.stored(l).Status, parley.OTPStatusPending)
	e.same("events", len(e.otpEvents()), 0)
}

func TestRandomTextsGetNoReply(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	e.make(e.request())
	letters := []rune(linkAlphabet + strings.ToLower(linkAlphabet) + "01ilo .,!?\né👍")
	for range 10_000 {
		text := make([]rune, 1+rand.N(60))
		for i := range text {
			text[i] = letters[rand.N(len(letters))]
		}
		m := e.codeText(budi, string(text))
		hit, err := e.issuer.MatchMessage(t.Context(), e.channel, &m)
		if err != nil || hit != nil || m.Content.Text() != string(text) {
			t.Fatalf("%q was taken for a code: %v", string(text), err)
		}
	}
	e.same("events", len(e.otpEvents()), 0)
}

func TestRedeliveriesCountOnce(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	l := e.make(e.request())
	m := e.codeText(ayu, e.promptOf(l))
	answers := 0
	for range 1000 {
		answers += len(e.receive(m))
	}
	e.same("answers", answers, 1)
	e.same("events", len(e.otpEvents()), 1)
	e.same("callbacks", e.calls(), []string{l.OnSuccess})
}

// TestExpiredLink moves a fake clock, so that nobody waits.
func TestExpiredLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newLinkEnv(t)
		l := e.make(e.request())
		time.Sleep(5*time.Minute - time.Millisecond)
		e.same("just before", e.stored(l).StatusAt(time.Now()), parley.OTPStatusPending)
		time.Sleep(time.Millisecond)
		expired := filled(l, parley.ReplyExpired)
		e.answered(e.says(budi, e.promptOf(l)), budi, expired)
		e.same("status", e.stored(l).Status, parley.OTPStatusExpired)
		e.same("events", e.otpEvents(), []string{fmt.Sprintf(`otp.expired{"id":"%s","contact_id":"%s"}`, l.ID, ayu)})

		// A flood gets three answers in ten minutes.
		answers := 0
		for range 100 {
			answers += len(e.says(ayu, e.promptOf(l)))
		}
		e.same("answers to a flood", answers, 3)
		time.Sleep(10 * time.Minute)
		e.same("within ten minutes", len(e.says(ayu, e.promptOf(l))), 0)
		time.Sleep(time.Second)
		e.answered(e.says(ayu, e.promptOf(l)), ayu, expired)
		e.same("events", len(e.otpEvents()), 1)
		e.same("callbacks", len(e.calls()), 0)
	})
}

// TestRepliesOfAChannelAreLimited has everybody send one old code. A success gets its reply all the same.
func TestRepliesOfAChannelAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newLinkEnv(t)
		old := e.make(e.request())
		e.make(e.request()) // which ends the one before
		many := func(senders int) (answers int) {
			var hits []*Hit
			for n := range senders {
				m := e.codeText(parley.ContactID(fmt.Sprintf("62812%08d@c.us", n)), e.promptOf(old))
				hit, err := e.issuer.MatchMessage(t.Context(), e.channel, &m)
				if err != nil {
					t.Fatal(err)
				}
				hits = append(hits, hit)
			}
			e.tx(func(tx *store.Tx) error {
				answers = 0
				for _, hit := range hits {
					reply, err := e.issuer.Redeem(t.Context(), tx, e.channel, hit)
					if err != nil {
						return err
					}
					if reply != nil {
						answers++
					}
				}
				return nil
			})
			return answers
		}
		e.tx(func(tx *store.Tx) error { // most of them were here before the test looks
			for range maxChannelReplies - 30 {
				if err := tx.AddLinkReply(t.Context(), e.channel.Code, allSenders, time.Now()); err != nil {
					return err
				}
			}
			return nil
		})
		e.same("answers to some more", many(20), 20)
		time.Sleep(30 * time.Minute)
		open := e.make(e.request())
		e.same("answers to a many", many(20), 10)
		e.answered(e.says(ayu, e.promptOf(open)), ayu, filled(open, parley.ReplySuccess))
		e.same("answers to who used it twice", len(e.says(ayu, e.promptOf(open))), 0)
		main := e.channel
		e.channel.Code = "other" // which has its own count
		e.answered(e.says(ayu, e.promptOf(e.make(e.request()))), ayu, filled(open, parley.ReplySuccess))
		e.answered(e.says(budi, e.promptOf(e.make(e.request()))), budi, filled(open, parley.ReplyFailed))
		e.channel = main
		time.Sleep(30*time.Minute + time.Second)
		e.same("answers when the first are an hour ago", many(20), 20)
	})
}

func TestExpiryFollowsTheChannelsClock(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	e.channel.Settings.ClockAhead = parley.Duration(48 * time.Hour)
	r := e.request()
	r.Now = r.Now.Add(48 * time.Hour)
	l := e.make(r)
	e.answered(e.says(ayu, e.promptOf(l)), ayu, filled(l, parley.ReplySuccess))
	late := e.make(r)
	e.channel.Settings.ClockAhead += parley.Duration(5 * time.Minute)
	e.answered(e.says(ayu, e.promptOf(late)), ayu, filled(late, parley.ReplyExpired))
}

func TestReplyWithTheCodeIsEncrypted(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	r := e.request()
	r.Messages = &parley.LinkMessages{Prompt: "in ##code##", Success: "##code## is yours, ##name##", Failed: "f", Expired: "e"}
	l := e.make(r)
	got := e.says(ayu, e.promptOf(l))
	secret, ok := got[0].Content.(parley.Secret)
	if !ok || secret.Shown != mask+" is yours, Toko Ayu" || secret.OTP != l.ID {
		t.Fatalf("answered %+v", got)
	}
	text, err := e.issuer.config.Keyring.Decrypt(secret.Encrypted, string(l.ID))
	e.same("what is sent", string(text), l.Code+" is yours, Toko Ayu")
	e.same("error", err, nil)
	e.same("what a simulated phone waits for", e.issuer.PossibleReplies(l.OTPLink, e.promptOf(l))[0], string(text))
	e.same("for another text", len(e.issuer.PossibleReplies(l.OTPLink, "in 23456789ABCDE")), 0)
}

func TestNoReplyOutsideTheAllowList(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	e.channel.Settings.AllowOnly = []parley.ContactID{ayu}
	l := e.make(e.request())
	e.same("answers", len(e.says(budi, e.promptOf(l))), 0)
	e.same("others", e.stored(l).Others, 1)
	e.answered(e.says(ayu, e.promptOf(l)), ayu, filled(l, parley.ReplySuccess))
}

// TestLinkOfAClockThatWasAhead makes a link on a clock that is a day ahead for a moment. Once that is noticed it
// works, for as long as it was to.
func TestLinkOfAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	r := e.request()
	r.Now = time.Now().Add(24 * time.Hour)
	l := e.make(r)
	if err := e.issuer.maintain(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if now := e.stored(l); now.CreatedAt.After(time.Now()) || now.ExpiresAt.Sub(now.CreatedAt) != r.Expires {
		t.Errorf("the link is of %s, until %s", now.CreatedAt, now.ExpiresAt)
	}
	e.answered(e.says(ayu, e.promptOf(l)), ayu, filled(l, parley.ReplySuccess))
}

// TestMatchMessageNeedsNoWriter shows a text that is all candidates while a transaction is under way: looking the
// codes up keeps nobody's writes waiting.
func TestMatchMessageNeedsNoWriter(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	l := e.make(e.request())
	begun, end := make(chan struct{}), make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		e.store.Tx(context.Background(), func(*store.Tx) error {
			close(begun)
			<-end
			return errors.New("only to hold the writer")
		})
	})
	<-begun
	m := e.codeText(ayu, l.Code+" "+manyLetters(65_536))
	hit, err := e.issuer.MatchMessage(t.Context(), e.channel, &m)
	close(end)
	writing.Wait()
	if err != nil || hit == nil || strings.Contains(m.Content.Text(), l.Code) {
		t.Errorf("the code was not found: %v", err)
	}
}

// BenchmarkInboundOfManyWords is what the worst message costs.
func BenchmarkInboundOfManyWords(b *testing.B) {
	bench := newBench(b, filepath.Join(b.TempDir(), "parley.db"))
	text := manyLetters(65_536)
	for b.Loop() {
		m := parley.Message{Channel: main, Chat: ayu, Content: parley.Text{Body: text}}
		_, err := bench.MatchMessage(b.Context(), parley.Channel{Code: main}, &m)
		bench.must(err)
	}
}

// BenchmarkInboundWithoutCode is what nearly every message costs.
func BenchmarkInboundWithoutCode(b *testing.B) {
	text := strings.Repeat("Halo kak, pesanan nomor INV-20261115-0042 sudah kami kirim ya. ", 5)
	for b.Loop() {
		if candidates(text) != nil {
			b.Fatal("no code is in it")
		}
	}
}
