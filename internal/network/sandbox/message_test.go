package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/network"
)

func TestMessagesAreFound(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		start, err := d.network.Cursor(t.Context(), "test")
		must(t, err)
		image := &parley.Message{Chat: parley.NewContactID(ayu), ID: network.RandomID("3EB0"), FromMe: true,
			Content: parley.Image{Media: parley.Media{MIME: "image/jpeg", Filename: "Promo.jpg", Size: 7}}}
		first := text(ayu, "Kode Anda 482913, lihat https://example.com/x.")
		d.send(first, image, text(budi, "not for Ayu"))
		for _, test := range []struct {
			query Query
			want  int
		}{
			{Query{}, 2},
			{Query{After: start}, 2},
			{Query{Limit: 1}, 1},
			{Query{Kind: parley.KindImage}, 1},
			{Query{Kind: parley.KindPoll}, 0},
			{Query{Contains: "KODE"}, 1},
			{Query{Contains: "promo.JPG"}, 1},
			{Query{Contains: "nothing"}, 0},
		} {
			if got := d.messages(ayu, test.query); len(got) != test.want {
				t.Errorf("%+v finds %+v", test.query, got)
			}
		}
		page, err := d.network.Messages(t.Context(), "test", ayu, Query{Limit: 1})
		must(t, err)
		m := page.Messages[0]
		if m.ID != first.Ref() || m.Codes[0] != "482913" || m.Links[0] != "https://example.com/x" || m.Copies != 1 || m.At.IsZero() {
			t.Errorf("the message is %+v", m)
		}
		next, err := d.network.Messages(t.Context(), "test", ayu, Query{After: page.Cursor})
		must(t, err)
		if len(next.Messages) != 1 || next.Messages[0].Media.Filename != "Promo.jpg" {
			t.Errorf("the next page is %+v", next.Messages)
		}
		end, err := d.network.Messages(t.Context(), "test", ayu, Query{After: next.Cursor})
		if err != nil || len(end.Messages) != 0 || end.Cursor != next.Cursor {
			t.Errorf("the last page is %+v (%v)", end, err)
		}
	})
}

func TestCopiesAreCounted(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		m := text(ayu, "hi")
		for range 3 {
			d.send(m)
		}
		if got := d.messages(ayu, Query{}); len(got) != 1 || got[0].Copies != 3 {
			t.Errorf("the phone shows %+v", got)
		}
	})
}

func TestMessagesFarApartAreFound(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		start, err := d.network.Cursor(t.Context(), "test")
		must(t, err)
		begin, err := start.seq("after")
		must(t, err)
		d.send(text(ayu, "first"))
		var others []*parley.Message
		for i := range 1010 {
			others = append(others, text(budi, fmt.Sprint(i)))
		}
		d.send(others...)
		d.send(text(ayu, "second"), text(ayu, "third"))
		got := d.messages(ayu, Query{})
		if len(got) != 3 || got[0].Body != "first" || got[1].Body != "second" || got[2].Body != "third" {
			t.Errorf("the phone shows %+v", got)
		}
		cursor := cursorAt(begin + 5) // far from the end, and there is more than a page right after it
		if got := d.messages(budi, Query{After: cursor, Limit: 50}); len(got) != 50 || got[0].Body != "4" {
			t.Errorf("the other phone shows %d, from %q", len(got), got[0].Body)
		}
	})
}

func TestBadCursor(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		for _, cursor := range []Cursor{"x", "c", "c-1", "cZ", "c0001", "cffffffffffffffffffff"} {
			if _, err := d.network.Messages(t.Context(), "test", ayu, Query{After: cursor}); parley.ToCode(err) != parley.Invalid {
				t.Errorf("%q: %v", cursor, err)
			}
		}
	})
}

func TestWaitEndsWhenOneMatches(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		found := make(chan Page, 1)
		began := time.Now()
		go func() {
			page, err := d.network.Messages(t.Context(), "test", ayu, Query{Contains: "kode", Wait: 10 * time.Second})
			if err != nil {
				t.Error(err)
			}
			found <- page
		}()
		waitFor(t, time.Second)
		d.send(text(ayu, "Selamat datang"))
		waitFor(t, time.Second)
		d.send(text(ayu, "Kode 4711"))
		page := <-found
		if len(page.Messages) != 1 || page.Messages[0].Codes[0] != "4711" {
			t.Errorf("it found %+v", page)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %s, want to be woken at once", took)
		}
	})
}

func TestWaitLooksBackToTheCursor(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.send(text(ayu, "Kode 4711"))
		began := time.Now()
		page, err := d.network.Messages(t.Context(), "test", ayu, Query{Wait: 10 * time.Second})
		if err != nil || len(page.Messages) != 1 || time.Since(began) != 0 {
			t.Errorf("it found %+v after %s (%v)", page, time.Since(began), err)
		}
	})
}

func TestWaitTimeoutListsWhatArrived(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.send(text(ayu, "Selamat datang di Toko Ayu"))
		waitFor(t, time.Second)
		began := time.Now()
		_, err := d.network.Messages(t.Context(), "test", ayu, Query{Contains: "kode", Wait: 10 * time.Second})
		timeout, ok := errors.AsType[*WaitTimeout](err)
		if !ok || timeout.Total != 1 || time.Since(began) != 10*time.Second {
			t.Fatalf("got %v after %s", err, time.Since(began))
		}
		want := `No message to 6281234567890 containing "kode" within 10s. ` +
			`1 message did arrive at that phone after the cursor: 00:00:00 text "Selamat datang di Toko Ayu" DELIVERED.`
		if got := timeout.Sentence(); got != want {
			t.Errorf("it says %s\nwant    %s", got, want)
		}
		if strings.Contains(err.Error(), "Selamat") || strings.Contains(err.Error(), ayu) {
			t.Errorf("its text may be logged, but says %s", err)
		}
		_, err = d.network.Messages(t.Context(), "test", budi, Query{Kind: parley.KindImage, Wait: time.Second})
		want = "No image message to 6281234567891 within 1s. Nothing arrived at that phone after the cursor."
		if timeout, ok := errors.AsType[*WaitTimeout](err); !ok || timeout.Sentence() != want {
			t.Errorf("got %+v", err)
		}
	})
}

func TestWaitSurvivesReset(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		found := make(chan error, 1)
		go func() {
			_, err := d.network.Messages(t.Context(), "test", ayu, Query{Wait: 10 * time.Second})
			found <- err
		}()
		synctest.Wait()
		must(t, d.network.Reset(t.Context(), "test"))
		synctest.Wait()
		d.send(text(ayu, "hi"))
		if err := <-found; err != nil {
			t.Errorf("the wait ended with %v", err)
		}
	})
}

func TestDeletedMessageStaysEmpty(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		m := text(ayu, "Kode 482913")
		d.send(m)
		d.send(&parley.Message{Chat: m.Chat, ID: network.RandomID("3EB0"), FromMe: true, Content: parley.Delete{Target: m.Ref()}})
		waitFor(t, time.Second)
		if got := d.messages(ayu, Query{}); len(got) != 1 || got[0].Status != parley.Deleted || got[0].Body != "" || len(got[0].Codes) != 0 {
			t.Errorf("the phone shows %+v", got)
		}
	})
}
