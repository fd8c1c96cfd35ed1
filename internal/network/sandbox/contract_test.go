package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/network/networktest"
	"parley/internal/postgrestest"
)

func TestContract(t *testing.T) {
	networktest.Run(t, func(t *testing.T) networktest.Harness {
		n := openNetwork(t, filepath.Join(t.TempDir(), "sandbox.db"))
		return networktest.Harness{
			Driver:  n,
			Channel: parley.Channel{Code: "test", Name: "Test", Network: parley.Sandbox},
			Phone: func(t testing.TB, number int) networktest.Phone {
				return testPhone{network: n, channel: "test", number: firstPhones[number].Number}
			},
			Absent: "99912345670@c.us",
			StoreMedia: func(t testing.TB, data []byte, m parley.Media) parley.Media {
				sum := sha256.Sum256(data)
				m.Size, m.SHA256 = int64(len(data)), sum[:]
				return m
			},
			Pair: func(t testing.TB, s network.Session) {
				if err := s.(network.Pairer).Pair(t.Context()); err != nil {
					t.Fatal(err)
				}
			},
			Disconnect: func(t testing.TB, s network.Session) {
				if err := n.AddFault(t.Context(), "test", Fault{Fault: FaultDrop}); err != nil {
					t.Fatal(err)
				}
				err := s.Send(t.Context(), []*parley.Message{text("6281234567890", "lost")})[0]
				if network.ToClass(err) != network.Unknown {
					t.Fatalf("a broken connection: %v", err)
				}
			},
		}
	})
}

func openNetwork(t testing.TB, path string) *Network {
	t.Helper()
	n, err := openWith(t.Context(), postgrestest.Path(t, path), nil, slog.New(slog.DiscardHandler), 1)
	if err != nil {
		t.Fatal(err)
	}
	n.OpenFile = openFile
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// withFile returns a content with a file. In these tests its key is the file itself.
func withFile(c parley.Content, data string) parley.Content {
	m := parley.MediaIn(c)
	if m == nil {
		return c
	}
	sum := sha256.Sum256([]byte(data))
	m.Key, m.Size, m.SHA256 = hex.EncodeToString([]byte(data)), int64(len(data)), sum[:]
	return parley.WithMedia(c, *m)
}

func openFile(_ context.Context, key string) (io.ReadCloser, error) {
	data, err := hex.DecodeString(key)
	if len(data) == 0 {
		return nil, errors.Join(fs.ErrNotExist, err)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// text makes a message to a number.
func text(number, body string) *parley.Message {
	return &parley.Message{Channel: "test", Chat: parley.NewContactID(number), ID: network.RandomID("3EB0"), FromMe: true,
		Content: parley.Text{Body: body}}
}

// testPhone lends a phone to the suite.
type testPhone struct {
	network *Network
	channel parley.ChannelCode
	number  string
}

func (p testPhone) Contact() parley.ContactID { return parley.NewContactID(p.number) }

func (p testPhone) Shows(t testing.TB) []networktest.Shown {
	t.Helper()
	page, err := p.network.Messages(t.Context(), p.channel, p.number, Query{})
	must(t, err)
	var shown []networktest.Shown
	for _, m := range page.Messages {
		shown = append(shown, networktest.Shown{ID: m.ID.ID, Group: m.ID.Chat.Group(), Content: m.Content, ReplyTo: m.ReplyTo,
			Reaction: m.Reaction, Deleted: m.Status == parley.Deleted, Edited: !m.EditedAt.IsZero(), Timer: m.Timer})
	}
	return shown
}

func (p testPhone) find(t testing.TB, id parley.MessageID) Message {
	t.Helper()
	m, err := p.network.Message(t.Context(), p.channel, p.number, string(id))
	must(t, err)
	if !m.FromPhone() {
		t.Fatalf("the phone sent no %s", id)
	}
	return m
}

func (p testPhone) SendInGroup(t testing.TB, group parley.GroupID, c parley.Content, replyTo parley.MessageID) parley.MessageID {
	t.Helper()
	m, err := p.network.SendAs(t.Context(), p.channel, p.number, Outgoing{Content: c, ReplyTo: string(replyTo), Group: group})
	must(t, err)
	return m.ID.ID
}

func (p testPhone) RenameGroup(t testing.TB, group parley.GroupID, name string) {
	t.Helper()
	must(t, p.network.RenameGroup(t.Context(), p.channel, p.number, group, name))
}

func (p testPhone) JoinGroup(t testing.TB, group parley.GroupID) {
	t.Helper()
	must(t, p.network.JoinGroup(t.Context(), p.channel, p.number, group))
}

func (p testPhone) LeaveGroup(t testing.TB, group parley.GroupID) {
	t.Helper()
	must(t, p.network.LeaveGroup(t.Context(), p.channel, p.number, group))
}

func (p testPhone) Send(t testing.TB, content parley.Content, media []byte, replyTo parley.MessageID) parley.MessageID {
	t.Helper()
	m, err := p.network.SendAs(t.Context(), p.channel, p.number, Outgoing{Content: withFile(content, string(media)), ReplyTo: string(replyTo)})
	must(t, err)
	return m.ID.ID
}

func (p testPhone) WasSeen(t testing.TB, id parley.MessageID) bool {
	t.Helper()
	return p.find(t, id).Status == parley.Read
}

func (p testPhone) ReactionTo(t testing.TB, id parley.MessageID) string {
	t.Helper()
	return p.find(t, id).Reaction
}

func (p testPhone) React(t testing.TB, target parley.MessageRef, emoji string) {
	t.Helper()
	must(t, p.network.React(t.Context(), p.channel, p.number, target.String(), emoji))
}

func (p testPhone) Vote(t testing.TB, poll parley.MessageID, options ...string) {
	t.Helper()
	must(t, p.network.Vote(t.Context(), p.channel, p.number, string(poll), options))
}

func (p testPhone) Delete(t testing.TB, id parley.MessageID) {
	t.Helper()
	must(t, p.network.Delete(t.Context(), p.channel, p.number, string(id)))
}

func (p testPhone) Edit(t testing.TB, id parley.MessageID, text string) {
	t.Helper()
	must(t, p.network.Edit(t.Context(), p.channel, p.number, string(id), text))
}

func (p testPhone) Read(t testing.TB) {
	t.Helper()
	_, err := p.network.Read(t.Context(), p.channel, p.number, "")
	must(t, err)
}

func (p testPhone) SetOnline(t testing.TB, online bool) {
	t.Helper()
	p.patch(t, PhonePatch{Online: &online})
}

func (p testPhone) Block(t testing.TB) {
	t.Helper()
	blocks := true
	p.patch(t, PhonePatch{Blocks: &blocks})
}

func (p testPhone) SetTimer(t testing.TB, group parley.GroupID, seconds int) {
	t.Helper()
	if group != "" {
		must(t, p.network.SetGroupTimer(t.Context(), p.channel, p.number, group, seconds))
		return
	}
	p.patch(t, PhonePatch{Timer: &seconds})
}

func (p testPhone) SeesTyping(t testing.TB) bool {
	t.Helper()
	phone, err := p.network.Phone(t.Context(), p.channel, p.number)
	must(t, err)
	return phone.TypingUntil.After(time.Now())
}

func (p testPhone) patch(t testing.TB, patch PhonePatch) {
	t.Helper()
	_, err := p.network.UpdatePhone(t.Context(), p.channel, p.number, patch)
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
