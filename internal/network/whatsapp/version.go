package whatsapp

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waCompanionReg"
	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/store"
	"google.golang.org/protobuf/proto"

	"parley"
	"parley/internal/network"
)

// WhatsApp refuses clients about four months after their version appeared: all channels at once. The version is whatsmeow's, unless
// somebody sets another. When it is refused, the driver asks web.whatsapp.com for the current one.

// The words for a version that is not a number.
const (
	versionAuto    = "auto"     // this program's, and the current one once that is refused
	versionBuiltIn = "built-in" // this program's, and no other
)

const (
	// versionFetchPause is between two questions for the current version.
	versionFetchPause = time.Hour
	// versionCheckPause is how often a refused channel looks whether another node stored a version.
	versionCheckPause   = 5 * time.Minute
	versionFetchTimeout = 30 * time.Second
	maxVersionPage      = 16 << 20
)

type clientVersion struct {
	number store.WAVersionContainer
	since  time.Time // when it was set, or fetched; zero: it is whatsmeow's
}

// versions is which version of WhatsApp Web the driver says that it is.
type versions struct {
	slot chan struct{} // one search for another version at a time

	mu        sync.Mutex
	current   clientVersion
	fetches   bool          // after a refusal
	fetchedAt time.Time     // the last attempt
	changed   chan struct{} // closed at the next change
}

// CheckVersion reports whether a text is a version: three numbers, "auto", "built-in" or nothing.
func CheckVersion(text string) error {
	_, err := parseVersion(text)
	return err
}

var versionForm = regexp.MustCompile(`^[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,10}$`)

// parseVersion returns the zero version for one that is not a number.
func parseVersion(text string) (number store.WAVersionContainer, err error) {
	if text == "" || text == versionAuto || text == versionBuiltIn {
		return number, nil
	}
	if versionForm.MatchString(text) {
		number, err = store.ParseVersion(text)
	}
	if err != nil || number.IsZero() {
		return number, parley.InvalidField("version", `version must be three numbers such as 2.3000.1045649367, "auto" or "built-in".`)
	}
	return number, nil
}

// openVersions reads which version to use at the start.
func (d *Driver) openVersions(ctx context.Context) error {
	d.versions.slot, d.versions.changed = make(chan struct{}, 1), make(chan struct{})
	number, err := parseVersion(d.config.Version)
	if err != nil {
		return err
	}
	stored, err := d.storedVersion(ctx)
	if err != nil {
		return err
	}
	v, isAuto := clientVersion{number: store.GetWAVersion()}, number.IsZero() && d.config.Version != versionBuiltIn
	switch {
	case isAuto && v.number.LessThan(stored.number), !number.IsZero() && number == stored.number:
		v = stored
	case !number.IsZero():
		v = clientVersion{number, time.Now()}
		err = d.storeVersion(ctx, v)
	}
	d.versions.current, d.versions.fetches = v, isAuto
	return err
}

// Version returns the version in use, and when it was set or fetched; zero: it is that of this program.
func (d *Driver) Version() (number string, since time.Time) {
	v := d.versions.get()
	return v.number.String(), v.since
}

// SetVersion changes the version for the next connections, until the driver is opened with another. Channels whose version was refused
// connect with it at once.
func (d *Driver) SetVersion(ctx context.Context, text string) error {
	number, err := parseVersion(text)
	if err != nil {
		return err
	}
	v := clientVersion{number, time.Now()}
	if number.IsZero() {
		v = clientVersion{number: store.GetWAVersion()}
	}
	if err := d.storeVersion(ctx, v); err != nil {
		return err
	}
	d.versions.set(v, func(s *versions) { s.fetches, s.fetchedAt = number.IsZero() && text != versionBuiltIn, time.Time{} })
	return nil
}

func (v *versions) get() clientVersion {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.current
}

func (v *versions) set(to clientVersion, also func(*versions)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current = to
	if also != nil {
		also(v)
	}
	close(v.changed)
	v.changed = make(chan struct{})
}

// isRefused reports whether the version that was refused is still in use, and a channel that is closed when it changes.
func (v *versions) isRefused(refused store.WAVersionContainer) (bool, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.current.number == refused, v.changed
}

// startFetch reports whether to ask for the current version now.
func (v *versions) startFetch() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.fetches || !v.fetchedAt.IsZero() && time.Since(v.fetchedAt) < versionFetchPause {
		return false
	}
	v.fetchedAt = time.Now()
	return true
}

const versionFact = "version"

func (d *Driver) storedVersion(ctx context.Context) (v clientVersion, err error) {
	text, err := d.keys.Fact(ctx, versionFact)
	number, at, ok := strings.Cut(text, " ")
	if err != nil || !ok {
		return v, err
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return v, fmt.Errorf("read the version of the client: %w", err)
	}
	v.since = time.Unix(seconds, 0)
	v.number, err = store.ParseVersion(number)
	return v, err
}

func (d *Driver) storeVersion(ctx context.Context, v clientVersion) error {
	if v.since.IsZero() {
		return d.keys.PutFact(ctx, versionFact, "")
	}
	return d.keys.PutFact(ctx, versionFact, fmt.Sprintf("%s %d", v.number, v.since.Unix()))
}

// anotherVersion reports whether there is another version than the one that was refused: somebody set it, another node stored it, or
// it is fetched now.
func (s *session) anotherVersion(refused store.WAVersionContainer) bool {
	v := &s.d.versions
	select {
	case v.slot <- struct{}{}:
		defer func() { <-v.slot }()
	case <-s.ctx.Done():
		return false
	}
	if still, _ := v.isRefused(refused); !still {
		return true
	}
	stored, err := s.d.storedVersion(s.ctx)
	if err == nil && refused.LessThan(stored.number) {
		v.set(stored, nil)
		return true
	}
	if err != nil || !v.startFetch() {
		return false
	}
	ctx, cancel := context.WithTimeout(s.ctx, versionFetchTimeout)
	defer cancel()
	client := s.versionClient()
	defer client.CloseIdleConnections()
	number, err := whatsmeow.GetLatestVersion(ctx, client)
	if err != nil {
		s.d.config.Log.Warn("whatsapp: ask for the current version", "channel", s.code, "error", truncate(err.Error()))
		return false
	}
	if !refused.LessThan(*number) {
		return false
	}
	found := clientVersion{*number, time.Now()}
	if err := s.d.storeVersion(s.ctx, found); err != nil {
		s.d.config.Log.Error("whatsapp: store the version of the client", "error", err) // it is fetched again after a restart
	}
	s.d.config.Log.Warn("whatsapp: the version of this program is refused; the current one is used", "refused", refused, "version", number)
	v.set(found, nil)
	return true
}

// versionClient reaches web.whatsapp.com as the channel's connections do.
func (s *session) versionClient() *http.Client {
	return &http.Client{Transport: &limitedTransport{s.d.dialer.client(s.findProxy, nil).Transport, maxVersionPage, versionFetchTimeout}}
}

// awaitVersion waits until there is another version than the refused one.
func (s *session) awaitVersion(e disconnection, phone network.Phone, worked bool) waitResult {
	for s.ctx.Err() == nil {
		still, changed := s.d.versions.isRefused(e.refused)
		if !still || s.anotherVersion(e.refused) {
			break
		}
		s.setState(e.status, e.reason, phone)
		if r := s.waitOrRequest(versionCheckPause, s.device, true, changed); r.unpaired || r.pair != nil {
			return r
		}
	}
	s.setState(s.connectingStatus(worked), "WhatsApp refused the version of its client. Another one is tried.", phone)
	return waitResult{}
}

// payload is what a client says of itself at a login.
func (conn *connection) payload() *waWa6.ClientPayload {
	p := conn.client.Store.GetClientPayload()
	p.UserAgent.AppVersion = conn.version.ProtoAppVersion()
	if p.DevicePairingData != nil {
		hash := conn.version.Hash()
		p.DevicePairingData.BuildHash = hash[:]
		p.DevicePairingData.DeviceProps = conn.s.d.deviceProps()
	}
	return p
}

// CheckPlatform checks a setting. Platforms are named as WhatsApp does: desktop, chrome, firefox, …
func CheckPlatform(platform string) error {
	_, err := parsePlatform(platform)
	return err
}

func parsePlatform(name string) (waCompanionReg.DeviceProps_PlatformType, error) {
	number, known := waCompanionReg.DeviceProps_PlatformType_value[strings.ToUpper(cmp.Or(name, "desktop"))]
	if !known {
		return 0, fmt.Errorf("there is no platform %q", name)
	}
	return waCompanionReg.DeviceProps_PlatformType(number), nil
}

// deviceProps describes a device that is being paired. Phones show a device of an unknown platform as "Other device".
func (d *Driver) deviceProps() []byte {
	props := proto.CloneOf(store.DeviceProps)
	platform, _ := parsePlatform(d.config.Platform) // which was checked
	props.Os, props.PlatformType = new(cmp.Or(d.config.DeviceName, "Parley")), platform.Enum()
	b, _ := proto.Marshal(props) // it cannot fail
	return b
}
