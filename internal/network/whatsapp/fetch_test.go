package whatsapp

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
)

// TestFilesHoldNothingUp: while the media server takes the request for a file and never answers, another chat's
// text comes, and delivery receipts.
func TestFilesHoldNothingUp(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	w.HoldDownloads(true)
	_, err := w.friend.SendImage(within(t), w.owner, []byte("x"), "image/png", "a picture")
	must(t, err)
	picture := in.said("a picture")
	ctx, cancel := context.WithCancel(t.Context())
	file, err := os.CreateTemp(t.TempDir(), "file")
	must(t, err)
	defer file.Close()
	ended := make(chan error, 1)
	go func() { ended <- s.Fetch(ctx, picture.File, file) }()
	must(t, w.AwaitHeld(within(t), 1))

	_, err = w.other.Send(within(t), w.owner, "from another")
	must(t, err)
	in.said("from another")
	in.got(parley.Delivered, w.sent(s, w.text(friendID, "hello")).ID)
	select {
	case err := <-ended:
		t.Errorf("it did not wait: %v", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	w.HoldDownloads(false)
	if got := w.fetched(s, picture); string(got) != "x" {
		t.Errorf("there came %q", got)
	}
}

// TestDownloadsThatStall are given up, and can be tried again.
func TestDownloadsThatStall(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	_, err := w.friend.SendImage(within(t), w.owner, []byte("x"), "image/png", "a picture")
	must(t, err)
	picture := in.said("a picture")
	w.fetched(s, picture) // the connection and the list of servers are there
	w.driver.fetching.stall = 50 * time.Millisecond
	w.HoldDownloads(true)
	if _, err := w.fetch(s, picture); !errors.Is(err, errStalled) || network.ClassOf(err) != network.Temporary {
		t.Errorf("it ended with %v", err)
	}
	w.driver.fetching.stall = stallLimit
	w.HoldDownloads(false)
	if got := w.fetched(s, picture); string(got) != "x" {
		t.Errorf("there came %q", got)
	}
}

// TestOneTryIsOneRequest: the gateway decides when to try again, not whatsmeow, which would wait as long as the
// server says.
func TestOneTryIsOneRequest(t *testing.T) {
	w := newWorld(t)
	requests := w.watch(nil)
	s, in := w.paired()
	_, err := w.friend.SendImage(within(t), w.owner, []byte("x"), "image/png", "a picture")
	must(t, err)
	picture := in.said("a picture")
	for _, status := range []int{429, 500, 503, 507} {
		before := len(requests.methods())
		w.Inject(whatsapptest.FailDownload(status))
		if _, err := w.fetch(s, picture); err == nil || network.ClassOf(err) != network.Temporary {
			t.Errorf("%d: it ended with %v", status, err)
		}
		if n := len(requests.methods()) - before; n != 1 {
			t.Errorf("%d: it was asked for %d times", status, n)
		}
	}
	if got := w.fetched(s, picture); string(got) != "x" {
		t.Errorf("there came %q", got)
	}
}

// TestLostFiles are uploaded again by the account's phone, as long as that has them.
func TestLostFiles(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	id, err := w.friend.SendImage(within(t), w.owner, []byte("x"), "image/png", "a picture")
	must(t, err)
	picture := in.said("a picture")
	w.owner.Expect(t, whatsapptest.ID(id))
	w.ForgetMedia()
	if got := w.fetched(s, picture); string(got) != "x" {
		t.Errorf("there came %q", got)
	}

	unknown := w.raw(t, parley.Image{Caption: "never uploaded", Media: parley.Media{MIME: "image/png"}}, []byte("y"), "")
	unknown.ImageMessage.FileEncSHA256 = make([]byte, 32)
	unknown.ImageMessage.DirectPath = new("/mms/phone/none?v=1")
	id, err = w.friend.SendMessage(within(t), w.owner, unknown)
	must(t, err)
	picture = in.said("never uploaded")
	w.owner.Expect(t, whatsapptest.ID(id))
	if _, err := w.fetch(s, picture); network.ClassOf(err) != network.Permanent {
		t.Errorf("a file that neither the network nor the phone has: %v", err)
	}

	w.driver.uploadPatience = 10 * time.Millisecond
	w.link.HoldNotifications(true)
	w.ForgetMedia()
	_, err = w.friend.SendImage(within(t), w.owner, []byte("z"), "image/png", "the last")
	must(t, err)
	picture = in.said("the last")
	w.ForgetMedia()
	if _, err := w.fetch(s, picture); err == nil || network.ClassOf(err) != network.Temporary {
		t.Errorf("a phone that does not answer: %v", err)
	}
	w.link.HoldNotifications(false)
}
