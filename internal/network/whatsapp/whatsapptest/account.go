package whatsapptest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.mau.fi/whatsmeow/types"
)

// Addressing is which addresses of an account others see.
type Addressing int

const (
	Both       Addressing = iota // by LID, with the number beside it: today's normal case
	ByNumber                     // by number, with the LID beside it
	OnlyLID                      // by LID alone: the number stays hidden and cannot be looked up
	OnlyNumber                   // by number alone: an account without a LID, which today's clients cannot write to
)

// account is one account: a number, a LID, a phone and its linked devices. Guarded by Server.mu.
type account struct {
	number, lid string
	name, about string
	pictureURL  string
	shown       Addressing
	phone       *Phone
	devices     map[uint16]*device
	lastDevice  uint16
	online      bool
	collections map[string]*collection
	blocked     []types.JID
	peers       map[*account]bool // accounts that are notified of changed devices and identities
	strangers   int               // error code for messages of accounts that this one never wrote to
	wroteTo     map[*account]bool // accounts that this one wrote to
	refusal     *Refusal          // response to the next logins; nil: success
}

// device is one device of an account: the phone (0), a simulated companion, or a linked client. Guarded by
// Server.mu.
type device struct {
	owner *account
	id    uint16
	keys  publicKeys // of a linked client, as it uploaded them
	adv   []byte     // signed identity of a companion; empty for a phone

	queue []*queued // unacknowledged stanzas, in order
	sim   *simDevice

	noise  [32]byte // credential of a linked client
	fresh  bool     // never active before
	conn   *conn    // its connection, if any
	active bool     // its connection receives stanzas
	hold   bool     // notifications wait
	held   []*queued

	removed bool // unlinked for good
}

// detach parts a device from its connection. The caller holds the lock.
func (d *device) detach() {
	if d.conn != nil {
		d.conn.device = nil
	}
	d.conn, d.active, d.held = nil, false, nil
}

type publicKeys struct {
	registration uint32
	identity     [32]byte
	signed       publicKey
	signature    [64]byte
	oneTime      []publicKey
}

type publicKey struct {
	id  uint32
	pub [32]byte
}

// newLID returns a stable LID for a number: of fifteen digits, or of fourteen for a number that ends with an even digit.
func newLID(number string) string {
	sum := sha256.Sum256([]byte(number))
	least := uint64(100_000_000_000_000)
	if (number[len(number)-1]-'0')%2 == 0 {
		least /= 10
	}
	return strconv.FormatUint(least+binary.BigEndian.Uint64(sum[:])%(9*least), 10)
}

func (a *account) pnJID(device uint16) types.JID {
	return types.JID{User: a.number, Server: types.DefaultUserServer, Device: device}
}

func (a *account) lidJID(device uint16) types.JID {
	return types.JID{User: a.lid, Server: types.HiddenUserServer, Device: device}
}

// publicJID is the address under which others see a device of this account.
func (a *account) publicJID(device uint16) types.JID {
	if a.shown == ByNumber || a.shown == OnlyNumber {
		return a.pnJID(device)
	}
	return a.lidJID(device)
}

// jidLike is the address of this account in the same form as another address.
func (a *account) jidLike(like types.JID, device uint16) types.JID {
	if like.Server == types.HiddenUserServer {
		return a.lidJID(device)
	}
	return a.pnJID(device)
}

func (a *account) deviceIDs() []uint16 { return slices.Sorted(maps.Keys(a.devices)) }

// addresses lists the devices of the account in the form of another address.
func (a *account) addresses(like types.JID) []types.JID {
	var all []types.JID
	for _, id := range a.deviceIDs() {
		all = append(all, a.jidLike(like, id))
	}
	return all
}

// find resolves a number or a LID. The caller holds the lock.
func (s *Server) find(jid types.JID) *account {
	switch jid.Server {
	case types.DefaultUserServer, types.LegacyUserServer:
		return s.byNumber[strings.TrimPrefix(jid.User, "+")]
	case types.HiddenUserServer:
		return s.byLID[jid.User]
	default:
		return nil
	}
}

// findDevice resolves the address of a device. The caller holds the lock.
func (s *Server) findDevice(jid types.JID) *device {
	a := s.find(jid)
	if a == nil {
		return nil
	}
	return a.devices[jid.Device]
}

// addPeers notes that two accounts exchanged something. The caller holds the lock.
func addPeers(a, b *account) {
	a.peers[b], b.peers[a] = true, true
}

// devicesHash is the short hash by which both sides compare lists of devices.
func devicesHash(devices []types.JID) string {
	names := make([]string, len(devices))
	for i, d := range devices {
		names[i] = d.ADString()
	}
	slices.Sort(names)
	sum := sha256.Sum256([]byte(strings.Join(names, "")))
	return "2:" + base64.RawStdEncoding.EncodeToString(sum[:6])
}

// nextID makes an id for a stanza of the server. The caller holds the lock.
func (s *Server) nextID(prefix string) string {
	s.serial++
	return fmt.Sprintf("%s%08X", prefix, s.serial)
}
