package cloud

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/network"
	"parley/internal/network/cloud/cloudtest"
	"parley/internal/network/networktest"
	"parley/internal/safehttp"
	"parley/internal/store"
)

const (
	code         = parley.ChannelCode("test")
	ownNumber    = "6281100000001"
	absentNumber = "99912345670"
)

// world is a driver with one channel, and Meta on the other side.
type world struct {
	*testing.T
	meta    *cloudtest.Server
	number  *cloudtest.Number
	driver  *Driver
	channel parley.Channel
	store   *store.DB
	dir     string

	mu          sync.Mutex
	credentials map[int64][2][]byte // the current and the old ones of each channel
	media       map[string]parley.Media
}

func (w *world) Credentials(_ context.Context, c parley.Channel) (current, old []byte, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stored := w.credentials[c.ID]
	return stored[0], stored[1], nil
}

func (w *world) SetCredentials(_ context.Context, c parley.Channel, credentials []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.credentials[c.ID] = [2][]byte{credentials, w.credentials[c.ID][0]}
	return nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, meta: cloudtest.Start(), dir: t.TempDir(), credentials: map[int64][2][]byte{}, media: map[string]parley.Media{}}
	t.Cleanup(w.meta.Close)
	var err error
	w.store, err = store.Open(t.Context(), filepath.Join(t.TempDir(), "parley.db"))
	w.must(err)
	t.Cleanup(func() { w.store.Close() })
	loopback := safehttp.Policy{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	w.driver = New(Config{Store: w.store, Credentials: w, Calls: loopback.Client(safehttp.Options{}),
		Files: loopback.Client(safehttp.Options{MaxBody: MaxDownload + 1}), Version: "1.2.3", Metrics: prometheus.NewRegistry(),
		Log:   slog.New(slog.DiscardHandler),
		Media: func(_ context.Context, key string) (io.ReadCloser, error) { return os.Open(filepath.Join(w.dir, key)) }})
	w.channel, w.number = w.addChannel(code, ownNumber)
	return w
}

// addChannel adds a channel with a number, whose calls it gets.
func (w *world) addChannel(code parley.ChannelCode, digits string) (parley.Channel, *cloudtest.Number) {
	w.Helper()
	ctx := w.Context()
	w.must(w.store.Tx(ctx, func(tx *store.Tx) error {
		return tx.AddChannel(ctx, parley.Channel{Code: code, Name: "Test", Network: parley.Cloud, CreatedAt: time.Now()})
	}))
	channel, err := w.store.Channel(ctx, code)
	w.must(err)
	number := w.meta.AddNumber(digits)
	called := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, hr *http.Request) { w.receive(channel, rw, hr) }))
	w.Cleanup(called.Close)
	number.Address = func() string { return called.URL }
	account, err := json.Marshal(account{PhoneID: number.ID, BusinessID: cloudtest.BusinessID, AccessToken: w.meta.Token,
		AppSecret: w.meta.AppSecret, VerifyToken: "verify", GraphURL: w.meta.URL})
	w.must(err)
	w.must(w.SetCredentials(ctx, channel, account))
	return channel, number
}

// receive does what the API does with a call.
func (w *world) receive(c parley.Channel, rw http.ResponseWriter, hr *http.Request) {
	body, _ := io.ReadAll(hr.Body)
	calls, err := w.driver.Verify(hr.Context(), c, hr.Header, body)
	for _, call := range calls {
		err = errors.Join(err, w.driver.Receive(hr.Context(), call))
	}
	switch parley.ToCode(err) {
	case parley.Unauthenticated:
		rw.WriteHeader(http.StatusUnauthorized)
	default:
		if err != nil {
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// keepFile stores a file where the driver looks for it.
func (w *world) keepFile(_ testing.TB, data []byte, m parley.Media) parley.Media {
	sum := sha256.Sum256(data)
	m.Size, m.SHA256, m.Key = int64(len(data)), sum[:], hex.EncodeToString(sum[:16])
	w.must(os.WriteFile(filepath.Join(w.dir, m.Key), data, 0o600))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.media[m.Key+fmt.Sprint(m.Animated)] = m
	return m
}

func TestContract(t *testing.T) {
	networktest.Run(t, func(t *testing.T) networktest.Harness {
		w := newWorld(t)
		phones := []*contractPhone{{w, w.number.Phone("6281234567890")}, {w, w.number.Phone("6281234567891")}}
		w.number.Phone(absentNumber).SetAbsent()
		for i, p := range phones { // they wrote before, so they are contacts
			w.must(w.store.Tx(t.Context(), func(tx *store.Tx) error {
				return errors.Join(tx.AddRemoteInbound(t.Context(), code, inboundID(fmt.Sprint(i)), store.RemoteContact{Contact: p.Contact(),
					Name: p.Name, Inbound: fmt.Sprint(i), InboundAt: time.Now()}),
					tx.SetRemoteAbsent(t.Context(), code, parley.NewContactID(absentNumber), time.Now()))
			}))
		}
		return networktest.Harness{
			Driver: w.driver, Channel: w.channel, Absent: parley.NewContactID(absentNumber), StoreMedia: w.keepFile, SilentBlocks: true,
			Phone:       func(_ testing.TB, number int) networktest.Phone { return phones[number] },
			SizeUnknown: true, TypingOnlyAfter: true,
		}
	})
}

// contractPhone lends a phone to the suite.
type contractPhone struct {
	w *world
	*cloudtest.Phone
}

func (p *contractPhone) Contact() parley.ContactID { return parley.NewContactID(p.Number) }

// ours returns our id of a message.
func (p *contractPhone) ours(t testing.TB, remote string) parley.MessageID {
	p.w.driver.session(code).awaitStored()
	m, err := p.w.store.RemoteMessage(t.Context(), code, remote)
	if err != nil && !errors.Is(err, parley.ErrNotFound) {
		t.Fatal(err)
	}
	return m.ID
}

func (p *contractPhone) remote(t testing.TB, id parley.MessageID) string {
	if id == "" {
		return ""
	}
	p.w.driver.session(code).awaitStored()
	known, err := p.w.store.RemoteSend(t.Context(), code, id)
	if err != nil {
		t.Fatal(err)
	}
	return known.Remote
}

func (p *contractPhone) Shows(t testing.TB) (all []networktest.Shown) {
	for _, m := range p.Phone.Shows() {
		shown := networktest.Shown{ID: p.ours(t, m.ID), Reaction: p.Phone.ReactionTo(m.ID)}
		if m.Context != nil {
			shown.ReplyTo = p.ours(t, m.Context.MessageID)
		}
		switch m.Type {
		case "text":
			shown.Content = parley.Text{Body: m.Text.Body}
		case "image":
			shown.Content = parley.Image{Caption: m.Image.Caption, Media: p.file(m.Image.ID, false)}
		case "video":
			shown.Content = parley.Video{Caption: m.Video.Caption, Media: p.file(m.Video.ID, false)}
		case "document":
			shown.Content = parley.File{Caption: m.Document.Caption, Media: p.file(m.Document.ID, false)}
		case "audio":
			shown.Content = parley.Voice{Media: p.file(m.Audio.ID, false)}
		case "sticker":
			moves := len(all) > 0 && all[len(all)-1].Content.Kind() == parley.KindSticker // both have the same bytes
			shown.Content = parley.Sticker{Media: p.file(m.Sticker.ID, moves)}
		case "location":
			shown.Content = parley.Location{Title: m.Location.Name, Latitude: m.Location.Latitude.String(), Longitude: m.Location.Longitude.String()}
		case "contacts":
			var c parley.Contacts
			for _, card := range m.Contacts {
				var numbers []string
				for _, phone := range card.Phones {
					numbers = append(numbers, phone.Number)
				}
				c.Cards = append(c.Cards, parley.NewContactCard(card.Name.Formatted, numbers))
			}
			if c.Title = c.Cards[0].Name; len(c.Cards) > 1 {
				c.Title = fmt.Sprintf("%d contacts", len(c.Cards))
			}
			shown.Content = c
		}
		all = append(all, shown)
	}
	return all
}

// file describes an uploaded file. What Meta does not carry is as it was stored.
func (p *contractPhone) file(id string, animated bool) parley.Media {
	data, mime := p.w.meta.File(id)
	sum := sha256.Sum256(data)
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	m := p.w.media[hex.EncodeToString(sum[:16])+fmt.Sprint(animated)]
	m.MIME, m.Size, m.SHA256 = mime, int64(len(data)), sum[:]
	return m
}

func (p *contractPhone) Send(t testing.TB, c parley.Content, data []byte, replyTo parley.MessageID) parley.MessageID {
	quoted := p.remote(t, replyTo)
	file := func(m parley.Media, kind string, fields map[string]any) string {
		sum := sha256.Sum256(data)
		fields["id"], fields["mime_type"] = p.w.meta.AddFile(data, m.MIME), m.MIME
		fields["sha256"] = base64.StdEncoding.EncodeToString(sum[:])
		return p.Phone.Send(kind, fields, quoted)
	}
	var remote string
	switch c := c.(type) {
	case parley.Text:
		remote = p.Phone.Send("text", map[string]string{"body": c.Body}, quoted)
	case parley.Location:
		remote = p.Phone.Send("location", map[string]any{"latitude": json.Number(c.Latitude), "longitude": json.Number(c.Longitude),
			"name": c.Title}, quoted)
	case parley.Image:
		remote = file(c.Media, "image", map[string]any{"caption": c.Caption})
	case parley.Sticker:
		remote = file(c.Media, "sticker", map[string]any{"animated": c.Media.Animated})
	case parley.File:
		remote = file(c.Media, "document", map[string]any{"filename": c.Media.Filename})
	default:
		t.Fatalf("a phone cannot send %T", c)
	}
	id := inboundID(remote)
	// The suite replies to it at once, also if the session got no call yet.
	p.w.must(p.w.store.Tx(t.Context(), func(tx *store.Tx) error {
		return tx.AddRemoteInbound(t.Context(), code, id, store.RemoteContact{Contact: p.Contact(), Inbound: remote, InboundAt: time.Now()})
	}))
	return id
}

func (p *contractPhone) React(t testing.TB, target parley.MessageRef, emoji string) {
	reaction := map[string]string{"message_id": p.remote(t, target.ID)}
	if emoji != "" {
		reaction["emoji"] = emoji
	}
	p.Phone.Send("reaction", reaction, "")
}

func (p *contractPhone) WasSeen(t testing.TB, id parley.MessageID) bool {
	return p.Phone.WasSeen(p.remote(t, id))
}

func (p *contractPhone) ReactionTo(t testing.TB, id parley.MessageID) string {
	return p.Phone.ReactionTo(p.remote(t, id))
}

func (p *contractPhone) Read(testing.TB)                 { p.Phone.Read() }
func (p *contractPhone) SetOnline(_ testing.TB, on bool) { p.Phone.SetOnline(on) }
func (p *contractPhone) Block(testing.TB)                { p.Phone.Block() }
func (p *contractPhone) SetTimer(t testing.TB, _ parley.GroupID, _ int) {
	t.Fatal("this network has no timers")
}
func (p *contractPhone) SeesTyping(testing.TB) bool { return p.Phone.SeesTyping() }

// What the network does not have.
func (p *contractPhone) SendInGroup(testing.TB, parley.GroupID, parley.Content, parley.MessageID) parley.MessageID {
	panic("no groups")
}
func (p *contractPhone) RenameGroup(testing.TB, parley.GroupID, string) { panic("no groups") }
func (p *contractPhone) JoinGroup(testing.TB, parley.GroupID)           { panic("no groups") }
func (p *contractPhone) LeaveGroup(testing.TB, parley.GroupID)          { panic("no groups") }
func (p *contractPhone) Vote(testing.TB, parley.MessageID, ...string)   { panic("no polls") }
func (p *contractPhone) Delete(testing.TB, parley.MessageID)            { panic("no deletions") }
func (p *contractPhone) Edit(testing.TB, parley.MessageID, string)      { panic("no edits") }

var _ network.Session = (*session)(nil)
