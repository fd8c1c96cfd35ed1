package doctor

import "time"

// Case names what is said of a gateway, by a finding or by what needs somebody. Sentences are for people;
// a case with its values is for programs, and for saying the same in another language. Names stay.
type Case int

const (
	unnamed Case = iota // only the sentence tells

	ConfigFile
	ConfigNone
	DataUnreadable
	DataOpen
	DataBroken
	DataChecked
	DataUnchecked
	DataUnwritable
	DiskLittle
	DiskFull
	ChannelStatus
	ChannelLoggedOut
	ChannelUnpaired
	ChannelFailed
	ChannelStopped
	ChannelRecovering
	WhatsAppClient
	WhatsAppOld
	WhatsAppUnknown
	WebhookFine
	WebhookOpen
	WebhookOff
	WebhookFailing
	ServerReady
	ServerNotReady
	ExposureTLS
	ExposureProxy
	ExposureLocal
	ExposureUntrusted
	LinksFine
	LinksOpen
	LinksLocal
	FFmpegFine
	FFmpegNoOpus
	FFmpegMissing
	FFmpegUnconfined
	FFmpegUnlimited
	CodesUndelivered
	CodesPaused
	CodesGuessed
	ClockFine
	ClockAhead
	ClockBehind

	allCases // how many there are
)

// Values are what a sentence fills in, as numbers or text. A name says what it holds: _at is a time, _ms and
// _bytes are how many of them, count is how many things the sentence counts, and reason is a sentence of
// somebody else that follows. What there is none of is left out.
type Values map[string]any

// known is what belongs to a case.
type known struct {
	name   string
	values []string
	remedy bool // what is to be done is a sentence, and not a command
}

// cases is the list of everything that can be said. The console has a text for each, in every language.
var cases = [allCases]known{
	ConfigFile:        {"config.file", []string{"file", "environment", "files", "flags"}, false},
	ConfigNone:        {"config.none", []string{"environment", "files", "flags"}, false},
	DataUnreadable:    {"data.unreadable", []string{"reason"}, false},
	DataOpen:          {"data.open", []string{"path", "mode"}, false},
	DataBroken:        {"data.broken", []string{"reason"}, false},
	DataChecked:       {"data.checked", []string{"path", "size_bytes", "free_bytes"}, false},
	DataUnchecked:     {"data.unchecked", []string{"path", "size_bytes", "free_bytes"}, false},
	DataUnwritable:    {"data.unwritable", []string{"reason"}, false},
	DiskLittle:        {"disk.little", []string{"free_bytes"}, true},
	DiskFull:          {"disk.full", []string{"free_bytes"}, true},
	ChannelStatus:     {"channel.status", []string{"code", "status", "since_at", "reason"}, false},
	ChannelLoggedOut:  {"channel.logged_out", []string{"code", "reason"}, false},
	ChannelUnpaired:   {"channel.unpaired", []string{"code", "reason"}, false},
	ChannelFailed:     {"channel.failed", []string{"code", "reason"}, false},
	ChannelStopped:    {"channel.stopped", []string{"code", "reason"}, false},
	ChannelRecovering: {"channel.recovering", []string{"code", "status", "for_ms", "reason"}, false},
	WhatsAppClient:    {"whatsapp.client", []string{"made_at", "age_ms"}, false},
	WhatsAppOld:       {"whatsapp.old", []string{"made_at", "age_ms"}, true},
	WhatsAppUnknown:   {"whatsapp.unknown", nil, false},
	WebhookFine:       {"webhook.fine", []string{"url"}, false},
	WebhookOpen:       {"webhook.open", []string{"url"}, true},
	WebhookOff:        {"webhook.off", []string{"url", "reason"}, false},
	WebhookFailing:    {"webhook.failing", []string{"url", "count", "for_ms", "reason"}, false},
	ServerReady:       {"server.ready", []string{"url", "pid"}, false},
	ServerNotReady:    {"server.not_ready", []string{"url", "reason"}, true},
	ExposureTLS:       {"exposure.tls", []string{"listen"}, false},
	ExposureProxy:     {"exposure.proxy", []string{"listen"}, false},
	ExposureLocal:     {"exposure.local", []string{"listen"}, false},
	ExposureUntrusted: {"exposure.untrusted", []string{"listen"}, true},
	LinksFine:         {"links.fine", []string{"url"}, false},
	LinksOpen:         {"links.open", []string{"url"}, true},
	LinksLocal:        {"links.local", nil, true},
	FFmpegFine:        {"ffmpeg.fine", []string{"version"}, false},
	FFmpegNoOpus:      {"ffmpeg.no_opus", []string{"version"}, true},
	FFmpegMissing:     {"ffmpeg.missing", nil, true},
	FFmpegUnconfined:  {"ffmpeg.unconfined", []string{"reason"}, true},
	FFmpegUnlimited:   {"ffmpeg.unlimited", []string{"version"}, true},
	CodesUndelivered:  {"otp.undelivered", []string{"count", "delivered"}, false},
	CodesPaused:       {"otp.paused", []string{"code", "count", "until_at"}, true},
	CodesGuessed:      {"otp.guessed", []string{"code", "count", "seen_at"}, true},
	ClockFine:         {"clock.fine", nil, false},
	ClockAhead:        {"clock.ahead", []string{"by_ms"}, true},
	ClockBehind:       {"clock.behind", []string{"by_ms"}, true},
}

// Cases lists every case.
func Cases() []Case {
	all := make([]Case, 0, allCases-1)
	for c := unnamed + 1; c < allCases; c++ {
		all = append(all, c)
	}
	return all
}

func (c Case) String() string { return cases[c].name }

// MarshalText writes the name.
func (c Case) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Values lists the names of the values that the case can have.
func (c Case) Values() []string { return cases[c].values }

// HasRemedy reports whether what is to be done about it is a sentence that another language says otherwise.
func (c Case) HasRemedy() bool { return cases[c].remedy }

// Because adds a reason, where there is one.
func (v Values) Because(reason string) Values {
	if reason != "" {
		v["reason"] = reason
	}
	return v
}

// stamp writes a time for programs; empty: there is none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
