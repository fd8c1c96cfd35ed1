package whatsapp

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/cbcutil"

	"parley"
	"parley/internal/network"
	"parley/internal/network/networktest"
	"parley/internal/network/whatsapp/whatsapptest"
)

func TestContract(t *testing.T) {
	networktest.Run(t, func(t *testing.T) networktest.Harness {
		w := newWorld(t)
		s, _ := w.paired()
		must(t, s.Close())
		d := &watched{Driver: w.driver, w: w}
		phones := []*contractPhone{{w: w, d: d, Phone: w.friend}, {w: w, d: d, Phone: w.other}}
		return networktest.Harness{
			Driver:       d,
			Channel:      parley.Channel{Code: code, Name: "Test", Network: parley.WhatsApp},
			Phone:        func(_ testing.TB, number int) networktest.Phone { return phones[number] },
			Absent:       parley.NewContactID(absentNumber),
			StoreMedia:   w.keepFile,
			Pair:         d.pair,
			SilentBlocks: true,
			Disconnect:   func(testing.TB, network.Session) { w.link.End(whatsapptest.Cut) },
		}
	})
}

// keepFile puts a file where the driver looks for it.
func (w *world) keepFile(t testing.TB, data []byte, m parley.Media) parley.Media {
	t.Helper()
	sum := sha256.Sum256(data)
	m.Size, m.SHA256, m.Key = int64(len(data)), sum[:], hex.EncodeToString(sum[:16])
	m.MediaKey = sum[:] // any 32 bytes
	must(t, os.WriteFile(filepath.Join(w.dir, m.Key), data, 0o600))
	return m
}

// watched is the driver with a look at what its sessions tell and send, which the suite does not pass on.
type watched struct {
	network.Driver
	w *world

	mu sync.Mutex
	s  *watchedSession
	in *inbox
}

type watchedSession struct {
	*session
	d *watched
}

func (d *watched) Open(ctx context.Context, c parley.Channel, sink network.Sink) (network.Session, error) {
	in := newInbox(d.w.t)
	s, err := d.Driver.Open(ctx, c, func(ctx context.Context, e network.Event) error {
		if err := sink(ctx, e); err != nil {
			return err
		}
		return in.sink(ctx, e)
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.s, d.in = &watchedSession{s.(*session), d}, in
	return d.s, nil
}

func (s *watchedSession) Send(ctx context.Context, ms []*parley.Message) []error {
	s.d.w.keep(ms...)
	return s.session.Send(ctx, ms)
}

// pair does what the owner of the phone does.
func (d *watched) pair(t testing.TB, s network.Session) {
	t.Helper()
	skip := d.in.count()
	must(t, s.(network.Pairer).Pair(t.Context()))
	d.w.scan(d.in, skip)
}

// sync waits until the network has handled everything that the session sent: it handles in order.
func (d *watched) sync(t testing.TB) {
	t.Helper()
	d.mu.Lock()
	s := d.s
	d.mu.Unlock()
	_, _, _ = s.Groups(t.Context(), parley.Page{Limit: 1}) // without a connection there is nothing to wait for
}

// contractPhone lends a phone of the loopback network to the suite.
type contractPhone struct {
	*whatsapptest.Phone
	w       *world
	d       *watched
	offline bool
	blocks  bool
}

func (p *contractPhone) Contact() parley.ContactID { return parley.NewContactID(p.Number()) }

// arrived waits until the phone has shown everything that the network took for it, and returns it.
func (p *contractPhone) arrived(t testing.TB) []whatsapptest.Message {
	t.Helper()
	p.d.sync(t)
	for _, e := range p.w.Traces() {
		isFor := e.To == p.Number() || slices.ContainsFunc(e.Deliveries, func(d *whatsapptest.Delivery) bool { return d.Phone == p.Number() })
		if e.From == ownerNumber && isFor && e.Acked > 0 && !p.offline && !p.blocks {
			p.Expect(t, whatsapptest.ID(e.ID))
		}
	}
	return slices.DeleteFunc(p.Inbox(), func(m whatsapptest.Message) bool { return m.From != ownerNumber })
}

func (p *contractPhone) Shows(t testing.TB) []networktest.Shown {
	t.Helper()
	var all []networktest.Shown
	find := func(id string) *networktest.Shown {
		i := slices.IndexFunc(all, func(s networktest.Shown) bool { return string(s.ID) == id })
		if i < 0 {
			return &networktest.Shown{}
		}
		return &all[i]
	}
	for _, m := range p.arrived(t) {
		switch m.Kind {
		case whatsapptest.KindReaction:
			find(m.Target).Reaction = m.Text
		case whatsapptest.KindDelete:
			find(m.Target).Deleted, find(m.Target).Content = true, parley.Text{}
		case whatsapptest.KindTimer:
		case whatsapptest.KindEdit:
			if shown := find(m.Target); !shown.Deleted { // as on a phone
				shown.Edited, shown.Content = true, parley.Text{Body: m.Text}
			}
		default:
			read := parse(m.Raw)
			read.content = p.w.withMentions(read)
			all = append(all, networktest.Shown{ID: parley.MessageID(m.ID), Group: groupChat(m.Chat).Group(), Content: p.fetched(t, read),
				ReplyTo: read.replyTo, Timer: int(findContextInfo(m.Raw).GetExpiration())})
		}
	}
	return all
}

// fetched downloads what a message carries and describes it by its bytes.
func (p *contractPhone) fetched(t testing.TB, read parsed) parley.Content {
	t.Helper()
	if read.file == nil {
		return read.content
	}
	data, err := p.Download(read.file)
	must(t, err)
	sum := sha256.Sum256(data)
	media := *parley.MediaIn(read.content)
	media.Size, media.SHA256 = int64(len(data)), sum[:]
	switch c := read.content.(type) {
	case parley.Image:
		return parley.Image{Caption: c.Caption, Media: media}
	case parley.Video:
		return parley.Video{Caption: c.Caption, Media: media}
	case parley.Voice:
		return parley.Voice{Media: media}
	case parley.Sticker:
		return parley.Sticker{Media: media}
	}
	return parley.File{Caption: read.content.Text(), Media: media}
}

func (p *contractPhone) Send(t testing.TB, c parley.Content, data []byte, replyTo parley.MessageID) parley.MessageID {
	t.Helper()
	id, err := p.SendMessage(t.Context(), p.w.owner, p.w.raw(t, c, data, replyTo))
	must(t, err)
	return parley.MessageID(id)
}

// withMentions shows mentions as a phone does.
func (w *world) withMentions(p parsed) parley.Content {
	text, ok := p.content.(parley.Text)
	for _, name := range p.mentioned {
		for _, phone := range []*whatsapptest.Phone{w.owner, w.friend, w.other} {
			if name == phone.LID().String() && ok {
				text.Mentions = append(text.Mentions, parley.NewContactID(phone.Number()))
				text.Body = replaceMention(text.Body, phone.LID().User, phone.Number())
			}
		}
	}
	if !ok {
		return p.content
	}
	return text
}

func (p *contractPhone) SendInGroup(t testing.TB, group parley.GroupID, c parley.Content, replyTo parley.MessageID) parley.MessageID {
	t.Helper()
	text := c.(parley.Text)
	raw := &waE2E.ExtendedTextMessage{Text: &text.Body, ContextInfo: &waE2E.ContextInfo{}}
	if replyTo != "" {
		raw.ContextInfo.StanzaID = new(string(replyTo))
	}
	for _, id := range text.Mentions {
		for _, phone := range []*whatsapptest.Phone{p.w.friend, p.w.other} {
			if phone.Number() == id.Number() {
				raw.ContextInfo.MentionedJID = append(raw.ContextInfo.MentionedJID, phone.LID().String())
				raw.Text = new(replaceMention(*raw.Text, id.Number(), phone.LID().User))
			}
		}
	}
	id, err := p.SendMessage(t.Context(), p.group(t, group), &waE2E.Message{ExtendedTextMessage: raw})
	must(t, err)
	return parley.MessageID(id)
}

func (p *contractPhone) group(t testing.TB, id parley.GroupID) *whatsapptest.Group {
	t.Helper()
	jid, ok := groupJID(id)
	if g := p.w.FindGroup(jid); ok && g != nil {
		return g
	}
	t.Fatalf("there is no group %s", id)
	return nil
}

func (p *contractPhone) RenameGroup(t testing.TB, group parley.GroupID, name string) {
	p.group(t, group).Rename(p.Phone, name)
}

func (p *contractPhone) JoinGroup(t testing.TB, group parley.GroupID) {
	p.group(t, group).Join(p.Phone)
}

func (p *contractPhone) LeaveGroup(t testing.TB, group parley.GroupID) {
	p.group(t, group).Remove(p.Phone, p.Phone)
}

// raw makes the message of a phone.
func (w *world) raw(t testing.TB, c parley.Content, data []byte, replyTo parley.MessageID) *waE2E.Message {
	t.Helper()
	var quote *waE2E.ContextInfo
	if replyTo != "" {
		quote = &waE2E.ContextInfo{StanzaID: new(string(replyTo))}
	}
	switch c := c.(type) {
	case parley.Text:
		return &waE2E.Message{ExtendedTextMessage: &waE2E.ExtendedTextMessage{Text: new(c.Body), ContextInfo: quote}}
	case parley.Location:
		latitude, _ := strconv.ParseFloat(c.Latitude, 64)
		longitude, _ := strconv.ParseFloat(c.Longitude, 64)
		return &waE2E.Message{LocationMessage: &waE2E.LocationMessage{Name: new(c.Title), DegreesLatitude: &latitude,
			DegreesLongitude: &longitude, ContextInfo: quote}}
	case parley.Image:
		up := w.put(t, data, whatsmeow.MediaImage)
		return &waE2E.Message{ImageMessage: &waE2E.ImageMessage{Caption: new(c.Caption), Mimetype: &c.Media.MIME, ContextInfo: quote,
			DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileSHA256: up.FileSHA256, FileEncSHA256: up.FileEncSHA256,
			FileLength: &up.FileLength}}
	case parley.Video:
		up := w.put(t, data, whatsmeow.MediaVideo)
		return &waE2E.Message{VideoMessage: &waE2E.VideoMessage{Caption: new(c.Caption), Mimetype: &c.Media.MIME, ContextInfo: quote,
			DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileSHA256: up.FileSHA256, FileEncSHA256: up.FileEncSHA256,
			FileLength: &up.FileLength}}
	case parley.Voice:
		up := w.put(t, data, whatsmeow.MediaAudio)
		return &waE2E.Message{AudioMessage: &waE2E.AudioMessage{PTT: new(true), Seconds: new(uint32(c.Media.Seconds)),
			Mimetype: &c.Media.MIME, ContextInfo: quote,
			DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileSHA256: up.FileSHA256, FileEncSHA256: up.FileEncSHA256,
			FileLength: &up.FileLength}}
	case parley.Sticker:
		up := w.put(t, data, whatsmeow.MediaImage)
		return &waE2E.Message{StickerMessage: &waE2E.StickerMessage{Mimetype: &c.Media.MIME, ContextInfo: quote,
			DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileSHA256: up.FileSHA256, FileEncSHA256: up.FileEncSHA256,
			FileLength: &up.FileLength}}
	case parley.File:
		up := w.put(t, data, whatsmeow.MediaDocument)
		return &waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{FileName: new(c.Media.Filename), Mimetype: &c.Media.MIME,
			ContextInfo: quote,
			DirectPath:  &up.DirectPath, MediaKey: up.MediaKey, FileSHA256: up.FileSHA256, FileEncSHA256: up.FileEncSHA256,
			FileLength: &up.FileLength}}
	}
	t.Fatalf("a phone does not send a %T here", c)
	return nil
}

// put encrypts a file and uploads it as a phone does.
func (w *world) put(t testing.TB, data []byte, kind whatsmeow.MediaType) whatsmeow.UploadResponse {
	t.Helper()
	plain := sha256.Sum256(data)
	iv, key, macKey := mediaKeys(plain[:], kind)
	sealed, err := cbcutil.Encrypt(key, iv, slices.Clone(data))
	must(t, err)
	mac := hmac.New(sha256.New, macKey)
	mac.Write(iv)
	mac.Write(sealed)
	body := append(sealed, mac.Sum(nil)[:10]...)
	sum := sha256.Sum256(body)
	path := "/mms/phone/" + base64.URLEncoding.EncodeToString(sum[:])
	client, err := w.Trust().HTTPClient()
	must(t, err)
	answer, err := client.Post("https://mmg.whatsapp.net"+path, "application/octet-stream", bytes.NewReader(body))
	must(t, err)
	must(t, answer.Body.Close())
	if answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status)
	}
	return whatsmeow.UploadResponse{DirectPath: path + "?v=1", MediaKey: plain[:], FileSHA256: plain[:], FileEncSHA256: sum[:],
		FileLength: uint64(len(data))}
}

func (p *contractPhone) WasSeen(t testing.TB, id parley.MessageID) bool {
	t.Helper()
	p.d.sync(t)
	e, _ := p.w.Trace(string(id))
	return e.At(p.w.owner, p.w.link.Device()).Receipts[string(types.ReceiptTypeRead)] > 0
}

func (p *contractPhone) ReactionTo(t testing.TB, id parley.MessageID) (emoji string) {
	t.Helper()
	for _, m := range p.arrived(t) {
		if m.Kind == whatsapptest.KindReaction && m.Target == string(id) {
			emoji = m.Text
		}
	}
	return emoji
}

// knows waits until the phone has a message that somebody is about to do something with.
func (p *contractPhone) knows(t testing.TB, fromMe bool, id parley.MessageID) {
	t.Helper()
	if fromMe {
		p.Expect(t, whatsapptest.ID(string(id)))
	}
}

func (p *contractPhone) React(t testing.TB, target parley.MessageRef, emoji string) {
	t.Helper()
	p.knows(t, target.FromMe, target.ID)
	_, err := p.Phone.React(t.Context(), string(target.ID), emoji)
	must(t, err)
}

func (p *contractPhone) Vote(t testing.TB, poll parley.MessageID, options ...string) {
	t.Helper()
	p.knows(t, true, poll)
	_, err := p.Phone.Vote(t.Context(), string(poll), options...)
	must(t, err)
}

func (p *contractPhone) Delete(t testing.TB, id parley.MessageID) {
	t.Helper()
	_, err := p.Phone.Delete(t.Context(), string(id))
	must(t, err)
}

func (p *contractPhone) Edit(t testing.TB, id parley.MessageID, text string) {
	t.Helper()
	_, err := p.Phone.Edit(t.Context(), string(id), text)
	must(t, err)
}

func (p *contractPhone) Read(t testing.TB) {
	t.Helper()
	var all, notes []string
	for _, m := range p.arrived(t) {
		all = append(all, m.ID)
		if m.Kind == whatsapptest.KindAudio {
			notes = append(notes, m.ID)
		}
	}
	must(t, p.Phone.Read(all...))
	if len(notes) > 0 {
		must(t, p.Played(notes...))
	}
}

func (p *contractPhone) SetOnline(t testing.TB, online bool) {
	p.offline = !online
	if online {
		p.SwitchOn()
	} else {
		p.SwitchOff()
	}
}

func (p *contractPhone) Block(testing.TB) {
	p.blocks = true
	p.Phone.Block(p.w.owner)
}

func (p *contractPhone) SetTimer(t testing.TB, group parley.GroupID, seconds int) {
	t.Helper()
	if group != "" {
		p.group(t, group).SetTimer(p.Phone, strconv.Itoa(seconds))
		return
	}
	_, err := p.Phone.SetTimer(t.Context(), p.w.owner, uint32(seconds))
	must(t, err)
}

func (p *contractPhone) SeesTyping(t testing.TB) bool {
	t.Helper()
	p.d.sync(t)
	typing, err := p.AwaitTyping(within(t))
	must(t, err)
	return typing.State == string(types.ChatPresenceComposing)
}
