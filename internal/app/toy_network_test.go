package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"parley"
	"parley/internal/callback"
	"parley/internal/encrypt"
	"parley/internal/network"
	"parley/internal/network/networktest"
	"parley/internal/postgrestest"
	"parley/internal/store"
	"parley/internal/store/sqldb"
	"parley/internal/wait"
)

// toyNetwork is the service that the toy driver talks to. Every number is a phone, except absentToy. It calls the address of an account
// with one event at a time, until the response is 200.
type toyNetwork struct {
	url     string
	running context.Context
	end     func()
	calling sync.WaitGroup

	mu     sync.Mutex
	lastID int
	lines  map[string]*toyLine // by number
	phones map[[2]string]*toyPhone
}

const absentToy = "99912345670"

type toyLine struct {
	toyAccount
	address func() string
	events  chan toyEvent
}

type toyPhone struct {
	offline, blocks bool
	shown, waiting  []toyEvent
}

func newToyNetwork(t *testing.T) *toyNetwork {
	n := &toyNetwork{lines: map[string]*toyLine{}, phones: map[[2]string]*toyPhone{}}
	n.running, n.end = context.WithCancel(context.Background())
	server := httptest.NewServer(http.HandlerFunc(n.accept))
	t.Cleanup(server.Close)
	n.url = server.URL
	return n
}

// add adds an account, whose address may be another one at each call.
func (n *toyNetwork) add(t *testing.T, number string, address func() string) toyAccount {
	line := &toyLine{toyAccount{n.url, number, "secret of " + number}, address, make(chan toyEvent, 10_000)}
	n.mu.Lock()
	n.lines[number] = line
	n.mu.Unlock()
	n.calling.Go(func() {
		for {
			select {
			case <-n.running.Done():
				return
			case e := <-line.events:
				for !n.call(line, e) && wait.Sleep(n.running, 5*time.Millisecond) {
				}
			}
		}
	})
	t.Cleanup(func() { n.end(); n.calling.Wait() })
	return line.toyAccount
}

func signToy(secret string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return fmt.Appendf(nil, "%x", mac.Sum(nil))
}

// call reports an event, and says whether it was received.
func (n *toyNetwork) call(line *toyLine, e toyEvent) bool {
	body, _ := json.Marshal(e)
	req, err := http.NewRequestWithContext(n.running, "POST", line.address(), bytes.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set("Toy-Signature", string(signToy(line.Secret, body)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// phone returns a phone in the chat with an account. It is called with the lock held.
func (n *toyNetwork) phone(account, number string) *toyPhone {
	p := n.phones[[2]string{account, number}]
	if p == nil {
		p = &toyPhone{}
		n.phones[[2]string{account, number}] = p
	}
	return p
}

// newID is an id that no bare id of ours can be.
func (n *toyNetwork) newID() string {
	n.lastID++
	return "wamid." + base64.StdEncoding.EncodeToString(fmt.Append(nil, n.lastID)) + "=="
}

func (n *toyNetwork) accept(w http.ResponseWriter, hr *http.Request) {
	var e toyEvent
	if err := json.NewDecoder(hr.Body).Decode(&e); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.phone(e.Account, e.Contact)
	switch {
	case !parley.NewContactID(e.Contact).CanExist():
		e = toyEvent{Code: string(parley.NotOnNetwork), Reason: network.ErrImpossibleNumber.Failure.Message}
	case e.Contact == absentToy:
		e = toyEvent{Code: string(parley.NotOnNetwork), Reason: "This number is not here."}
	case p.blocks:
		e = toyEvent{Code: string(parley.Blocked), Reason: "This number blocks you."}
	default:
		e.ID, e.At = n.newID(), time.Now()
		if p.waiting = append(p.waiting, e); !p.offline {
			n.deliver(e.Account, e.Contact)
		}
	}
	json.NewEncoder(w).Encode(e)
}

// deliver shows what waits for a phone. A text that says so fails instead.
func (n *toyNetwork) deliver(account, number string) {
	p := n.phone(account, number)
	for _, e := range p.waiting {
		status := toyEvent{ID: e.ID, Contact: number, Status: int(parley.Delivered), At: time.Now()}
		if e.Text == "fail later" {
			status.Status, status.Code, status.Reason = int(parley.Failed), string(parley.Refused), "The network changed its mind."
		} else {
			p.shown = append(p.shown, e)
		}
		n.lines[account].events <- status
	}
	p.waiting = nil
}

// say has a phone write to an account.
func (n *toyNetwork) say(account, number, text, replyTo string) (id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id = n.newID()
	n.lines[account].events <- toyEvent{ID: id, Contact: number, Text: text, ReplyTo: replyTo, At: time.Now()}
	return id
}

// openToy opens the driver's own table.
func openToy(t *testing.T, path string) *toy {
	t.Helper()
	tables := &fstest.MapFile{Data: []byte(`CREATE TABLE toy_message (channel TEXT, remote TEXT, id TEXT, PRIMARY KEY (channel, remote));
		CREATE INDEX toy_message_id ON toy_message (channel, id)`)}
	db, err := sqldb.Open(t.Context(), sqldb.Options{Path: path, Schema: "toy",
		Migrations: fstest.MapFS{"sqlite/0001_tables.sql": tables, "postgres/0001_tables.sql": tables}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &toy{db: db}
}

// givenCredentials are those of every channel.
type givenCredentials []byte

func (c givenCredentials) Credentials(context.Context, parley.Channel) (current, old []byte, err error) {
	return c, nil, nil
}

func (givenCredentials) SetCredentials(context.Context, parley.Channel, []byte) error { return nil }

// suitePhone lends a phone to the suite.
type suitePhone struct {
	networktest.Phone // nil: what the network does not have
	*toyNetwork
	driver          *toySession
	account, number string
}

func (p suitePhone) Contact() parley.ContactID { return parley.NewContactID(p.number) }

func (p suitePhone) with(do func(*toyPhone)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do(p.phone(p.account, p.number))
}

func (p suitePhone) Shows(t testing.TB) (all []networktest.Shown) {
	ours := func(remote string) parley.MessageID {
		_, id, err := p.driver.find(t.Context(), "remote", remote)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	p.with(func(phone *toyPhone) {
		for _, e := range phone.shown {
			all = append(all, networktest.Shown{ID: ours(e.ID), Content: parley.Text{Body: e.Text}, ReplyTo: ours(e.ReplyTo)})
		}
	})
	return all
}

func (p suitePhone) Send(t testing.TB, c parley.Content, _ []byte, replyTo parley.MessageID) parley.MessageID {
	quoted, _, err := p.driver.find(t.Context(), "id", string(replyTo))
	if err != nil {
		t.Fatal(err)
	}
	remote := p.say(p.account, p.number, c.Text(), quoted)
	id := parley.MessageID(fmt.Sprintf("TOY%x", sha256.Sum256([]byte(remote)))[:32])
	// The suite replies to it at once, also if the session got no event yet.
	if err := p.driver.storeID(t.Context(), remote, id); err != nil {
		t.Fatal(err)
	}
	return id
}

func (p suitePhone) Read(testing.TB) {
	p.with(func(phone *toyPhone) {
		for _, e := range phone.shown {
			p.lines[p.account].events <- toyEvent{ID: e.ID, Contact: p.number, Status: int(parley.Read), At: time.Now()}
		}
	})
}

func (p suitePhone) SetOnline(_ testing.TB, online bool) {
	p.with(func(phone *toyPhone) {
		if phone.offline = !online; online {
			p.deliver(p.account, p.number)
		}
	})
}

func (p suitePhone) Block(testing.TB) { p.with(func(phone *toyPhone) { phone.blocks = true }) }

// TestToyContract holds the toy to the contract of all networks: what it cannot do is skipped, because it says so.
func TestToyContract(t *testing.T) {
	networktest.Run(t, func(t *testing.T) networktest.Harness {
		n, d := newToyNetwork(t), openToy(t, filepath.Join(t.TempDir(), "toy.db"))
		channel := parley.Channel{Code: "test", Name: "Test", Network: "toy"}
		called := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
			body, _ := io.ReadAll(hr.Body)
			calls, err := d.Verify(hr.Context(), channel, hr.Header, body)
			if err != nil || d.Receive(hr.Context(), calls[0]) != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		t.Cleanup(called.Close)
		account, _ := json.Marshal(n.add(t, "6281100000001", func() string { return called.URL }))
		d.Credentials = givenCredentials(account)
		return networktest.Harness{
			Driver: d, Channel: channel, Absent: parley.NewContactID(absentToy),
			Phone: func(_ testing.TB, number int) networktest.Phone {
				return suitePhone{toyNetwork: n, driver: &toySession{toy: d, channel: "test"}, account: "6281100000001",
					number: fmt.Sprint(6281234567890 + number)}
			},
			StoreMedia: func(_ testing.TB, _ []byte, m parley.Media) parley.Media { return m },
		}
	})
}

// toyHook is a webhook that gets the events of all channels.
type toyHook struct {
	mu     sync.Mutex
	events []toyHookEvent
}

type toyHookEvent struct {
	ID, Type, Channel string
	Data              struct {
		ID, Body, Status string
		ReplyTo          string `json:"reply_to"`
		Error            struct{ Message string }
	}
}

func (h *toyHook) ServeHTTP(_ http.ResponseWriter, hr *http.Request) {
	body, _ := io.ReadAll(hr.Body)
	var e toyHookEvent
	json.Unmarshal(body, &e)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.ContainsFunc(h.events, func(other toyHookEvent) bool { return other.ID == e.ID }) && strings.HasPrefix(e.Type, "message.") {
		h.events = append(h.events, e)
	}
}

// await waits for as many events that match, and returns them.
func (h *toyHook) await(t *testing.T, count int, matches func(toyHookEvent) bool) (found []toyHookEvent) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		h.mu.Lock()
		found = nil
		for _, e := range h.events {
			if matches(e) {
				found = append(found, e)
			}
		}
		h.mu.Unlock()
		if len(found) >= count {
			return found
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d events came: %+v", len(found), count, found)
		}
	}
}

// toyServers is a database with channels on the toy network, a webhook, and the servers on it.
type toyServers struct {
	network *toyNetwork
	hook    toyHook
	token   string // global
	admin   string
	mu      sync.Mutex
	servers []*running
	next    int
}

// at returns the address of a server, another one at each call.
func (s *toyServers) at() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	return s.servers[s.next%len(s.servers)].url
}

// called returns the address that the network calls: always that of the first server, whichever serves the channel.
func (s *toyServers) called(channel parley.ChannelCode) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.servers) == 0 {
		return "http://127.0.0.1:1"
	}
	return s.servers[0].url + "/network/toy/" + string(channel)
}

// stop stops the first server. The network calls it until it is gone.
func (s *toyServers) stop(t *testing.T) {
	t.Helper()
	s.servers[0].end(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers = s.servers[1:]
}

func number(i int) string { return fmt.Sprint(6281100000001 + i) }

// fill creates the channels toko0 and so on.
func (s *toyServers) fill(t *testing.T, data *Data, channels int) {
	t.Helper()
	ctx, secrets := t.Context(), callback.NewSecrets(data.Store, data.Keyring)
	hook := httptest.NewServer(&s.hook)
	t.Cleanup(hook.Close)
	err := data.Store.Tx(ctx, func(tx *store.Tx) error {
		return tx.AddWebhook(ctx, parley.Webhook{ID: parley.NewWebhookID(), URL: hook.URL, CreatedAt: time.Now()})
	})
	for i := range channels {
		code := parley.ChannelCode(fmt.Sprint("toko", i))
		account, _ := json.Marshal(s.network.add(t, number(i), func() string { return s.called(code) }))
		err = cmp.Or(err, AddChannel(ctx, data.Store, parley.Channel{Code: code, Name: "Toko", Network: "toy"}))
		if err == nil {
			err = secrets.SetCredentials(ctx, channelNamed(t, data, code), account)
		}
	}
	var err2, err3 error
	s.token, err2 = data.Tokens.Issue(ctx, parley.Token{Kind: parley.GlobalToken})
	s.admin, err3 = data.Tokens.Issue(ctx, parley.Token{Kind: parley.AdminToken, Role: parley.Owner})
	if err := cmp.Or(err, err2, err3); err != nil {
		t.Fatal(err)
	}
}

// start starts a server with the toy network.
func (s *toyServers) start(t *testing.T, c Config, table string) *running {
	t.Helper()
	driver := openToy(t, table)
	c.AllowPrivate = loopback
	c.network = func(credentials network.Credentials) network.Driver {
		driver.Credentials = credentials
		return driver
	}
	r := start(t, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers = append(s.servers, r)
	return r
}

// post sends a request to any server, again while the channel moves, and returns the response.
func (s *toyServers) post(t *testing.T, path, channel, body string) (int, string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", s.at()+path, strings.NewReader(body))
		req.Header = http.Header{"Authorization": {"Bearer " + s.token}, "X-Channel": {channel}, "Content-Type": {"application/json"},
			"Idempotency-Key": {channel + path + fmt.Sprintf("%x", sha256.Sum256([]byte(body)))[:16]}}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusServiceUnavailable {
				return resp.StatusCode, string(text)
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no server responds: %v", err)
		}
	}
}

// do sends a request and returns the response.
func (s *toyServers) do(t *testing.T, req *http.Request) (int, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	return resp.StatusCode, string(text)
}

const toyPhoneNumber = "6281234567890"

// exchange has a phone and a channel write to each other, from the HTTP request to the webhook.
func (s *toyServers) exchange(t *testing.T, i int, round string) {
	t.Helper()
	channel := fmt.Sprint("toko", i)
	is := func(kind, body, status string) func(toyHookEvent) bool {
		return func(e toyHookEvent) bool {
			return e.Channel == channel && e.Type == kind && e.Data.Body == body && e.Data.Status == status
		}
	}
	asked := s.network.say(number(i), toyPhoneNumber, "open "+round+"?", "")
	received := s.hook.await(t, 1, is("message.received", "open "+round+"?", "RECEIVED"))
	if id := received[0].Data.ID; strings.Contains(id, "wamid") || !strings.HasPrefix(id, "TOY") {
		t.Errorf("the network's own id left the driver: %s", id)
	}
	status, response := s.post(t, "/api/send-message/text", channel, fmt.Sprintf(`{"contact_id":"%s@c.us","message":"yes %s","reply_to":%q}`,
		toyPhoneNumber, round, received[0].Data.ID))
	if status != http.StatusOK || strings.Contains(response, "wamid") {
		t.Fatalf("status %d: %s", status, response)
	}
	s.hook.await(t, 1, is("message.status", "yes "+round, "DELIVERED"))
	s.network.mu.Lock()
	shown := s.network.phone(number(i), toyPhoneNumber).shown
	s.network.mu.Unlock()
	answers := slices.DeleteFunc(slices.Clone(shown), func(e toyEvent) bool { return e.Text != "yes "+round })
	if len(answers) != 1 || answers[0].ReplyTo != asked {
		t.Errorf("the phone shows %+v, want one reply to %s", answers, asked)
	}
	s.network.say(number(i), toyPhoneNumber, "thanks "+round, answers[0].ID)
	thanks := s.hook.await(t, 1, is("message.received", "thanks "+round, "RECEIVED"))
	if !strings.Contains(response, thanks[0].Data.ReplyTo) || thanks[0].Data.ReplyTo == "" {
		t.Errorf("it replies to %q, want the id in %s", thanks[0].Data.ReplyTo, response)
	}
}

// TestToyNetwork has a network that Parley does not know work on one server.
func TestToyNetwork(t *testing.T) {
	s, c := &toyServers{network: newToyNetwork(t)}, Config{DataDir: Dir(t.TempDir())}
	data := openTest(t, c.DataDir)
	s.fill(t, data, 1)
	if err := data.Close(); err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(t.TempDir(), "toy.db")
	r := s.start(t, c, table)
	s.exchange(t, 0, "today")
	doomed := `{"contact_id":"` + toyPhoneNumber + `@c.us","message":"fail later"}`
	if status, text := s.post(t, "/api/send-message/text", "toko0", doomed); status != 200 {
		t.Errorf("status %d: %s", status, text)
	}
	failed := s.hook.await(t, 1, func(e toyHookEvent) bool { return e.Data.Status == "FAILED" })
	if failed[0].Data.Error.Message != "The network changed its mind." {
		t.Errorf("it failed with %+v", failed[0])
	}
	for path, body := range map[string]string{
		"/api/groups/create":         `{"name":"Team","participants":["` + toyPhoneNumber + `@c.us"]}`,
		"/api/send-message/location": `{"contact_id":"` + toyPhoneNumber + `@c.us","title":"Monas","latitude":"-6.1","longitude":"106.8"}`,
	} {
		if status, text := s.post(t, path, "toko0", body); status != http.StatusBadRequest || !strings.Contains(text, `"unsupported"`) {
			t.Errorf("%s: status %d: %s", path, status, text)
		}
	}
	_, requests := r.get(t, "/api/manage/channels/toko0/requests", s.admin)
	if !strings.Contains(requests, "/api/send-message/text") || strings.Contains(requests, "/network/") {
		t.Errorf("the request log has %s", requests)
	}
	resp, err := http.Get(r.url + "/network/toy/toko0?challenge=42")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	if resp.Body.Close(); string(text) != "42" {
		t.Errorf("the challenge: %d %s", resp.StatusCode, text)
	}

	// What comes while no server runs comes later.
	s.stop(t)
	s.network.say(number(0), toyPhoneNumber, "anybody there?", "")
	s.start(t, c, table)
	s.hook.await(t, 1, func(e toyHookEvent) bool { return e.Data.Body == "anybody there?" })
	s.exchange(t, 0, "tomorrow")
}

// TestToyNetworkOnNodes has it work on three nodes, of which the network calls one, until that stops.
func TestToyNetworkOnNodes(t *testing.T) {
	const channels = 6
	server := postgrestest.Start(t)
	s, database, keyFile := &toyServers{network: newToyNetwork(t)}, server.Schema(t), filepath.Join(t.TempDir(), "secret.key")
	keyring, err := encrypt.OpenKeyFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	db, authority := openBoth(t, database, keyring)
	s.fill(t, &Data{Store: db, Keyring: keyring, Tokens: authority}, channels)
	media := Media{Location: t.TempDir()}
	for range 3 {
		s.start(t, Config{DataDir: Dir(t.TempDir()), Database: database, SecretKeyFile: keyFile, NodeListen: "127.0.0.1:0",
			Media: media}, database)
	}
	everywhere := func(round string) {
		var exchanges sync.WaitGroup
		for i := range channels {
			exchanges.Go(func() { s.exchange(t, i, round) })
		}
		exchanges.Wait()
	}
	everywhere("on three")
	var stopped sync.WaitGroup
	stopped.Go(func() { s.stop(t) })
	everywhere("on two")
	stopped.Wait()
	everywhere("afterwards")
	for i := range channels {
		seen := map[string]int{}
		for _, e := range s.hook.await(t, 0, func(e toyHookEvent) bool { return e.Channel == fmt.Sprint("toko", i) }) {
			seen[e.Type+" "+e.Data.Body+" "+e.Data.Status]++
		}
		for what, n := range seen {
			if n > 1 {
				t.Errorf("%q came as %d events", what, n)
			}
		}
	}
}
