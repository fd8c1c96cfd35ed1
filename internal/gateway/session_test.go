package gateway_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"parley"
	"parley/internal/gateway"
	"parley/internal/network"
)

// modest is the driver as a network that has only texts: no groups, no contacts, no pairing.
type modest struct{ *driver }

func (modest) Info() network.Info {
	return network.Info{Name: "modest", Title: "Modest", Kinds: []parley.Kind{parley.KindText}}
}

// TestUnsupported asks a network for what it does not have. Each error names the network, and nothing is queued.
func TestUnsupported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		if _, err := b.g.CreateChannel(t.Context(), parley.Channel{Code: "small", Network: "modest"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		send := func(to parley.ContactID, content parley.Content) error {
			_, err := b.g.Send(t.Context(), "small", []gateway.Draft{
				{To: "6281234567890@c.us", Content: parley.Text{Body: "hi"}}, {To: to, Content: content}}, gateway.SendOptions{})
			return err
		}
		second := func(_ any, err error) error { return err }
		for what, err := range map[string]error{
			"messages of type poll": send("6281234567890@c.us", parley.Poll{Title: "?", Options: []string{"a", "b"}}),
			"the operation archive": send("6281234567890@c.us", parley.Archive{}),
			"groups":                send("120363020000000001@g.us", parley.Text{Body: "hi"}),
			"pairing":               second(b.g.PairChannel(t.Context(), "small", "")),
			"pairing by a code: pair it without a number": second(b.g.PairChannel(t.Context(), "small", "6281234567890")),
			"looking up contacts":                         second(b.g.Directory("small")),
			"typing":                                      second(b.g.Typist("small")),
		} {
			want := "Channel small is on Modest, which does not support " + what + "."
			if parley.ToCode(err) != parley.NotSupported || err.Error() != want {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, err := range []error{second(b.g.Groups("small")), second(b.g.LogoutChannel(t.Context(), "small"))} {
			if parley.ToCode(err) != parley.NotSupported || !strings.Contains(err.Error(), "Modest") {
				t.Errorf("got %v", err)
			}
		}
		if err := b.g.LookUpNumber(t.Context(), "small", "6281234567890@c.us"); err != nil {
			t.Errorf("a network without a directory has one spelling, but: %v", err)
		}
		if n := b.g.QueueDepth("small"); n != 0 || len(b.driver.session("small").given) != 0 {
			t.Errorf("%d messages are queued", n)
		}
		if err := send("6281234567890@c.us", parley.Text{Body: "there"}); err != nil {
			t.Error(err)
		}
	})
}
