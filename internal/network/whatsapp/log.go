package whatsapp

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	signallog "go.mau.fi/libsignal/logger"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/store"
	waLog "go.mau.fi/whatsmeow/util/log"

	"parley"
	"parley/internal/network/whatsapp/keystore"
)

// logger passes on what whatsmeow logs at warn and above, without stanzas and whole numbers.
type logger struct {
	log    *slog.Logger
	muted  *atomic.Bool // once a connection is over, what whatsmeow says about it is noise
	module string
	// received is called with every stanza that comes, before whatsmeow handles it; nil: nobody wants to know.
	received func(*waBinary.Node)
}

var _ waLog.Logger = (*logger)(nil)

func newLogger(log *slog.Logger, channel parley.ChannelCode) *logger {
	if channel != "" {
		log = log.With("channel", channel)
	}
	return &logger{log: log, muted: new(atomic.Bool)}
}

func (l *logger) Debugf(string, ...any) {}
func (l *logger) Infof(string, ...any)  {}

func (l *logger) Warnf(format string, args ...any)  { l.write(slog.LevelWarn, format, args) }
func (l *logger) Errorf(format string, args ...any) { l.write(slog.LevelError, format, args) }

// Sub names a part of whatsmeow. The part Recv logs each stanza that comes, and nothing else.
func (l *logger) Sub(module string) waLog.Logger {
	sub := logger{log: l.log, muted: l.muted, module: module}
	if module == "Recv" && l.received != nil {
		return &stanzaTap{sub, l.received}
	}
	return &sub
}

// stanzaTap is no log: whatsmeow has no other seam between reading a stanza and handling it on a goroutine of its own,
// where a panic would end the process. stanzas.go takes the stanzas over here. The version of whatsmeow is pinned, and
// no message would arrive if this line of its log changed, so every test of receiving covers it.
type stanzaTap struct {
	logger
	received func(*waBinary.Node)
}

func (t *stanzaTap) Debugf(_ string, args ...any) {
	if len(args) == 1 {
		if node, ok := args[0].(*waBinary.Node); ok {
			t.received(node)
		}
	}
}

func (l *logger) write(level slog.Level, format string, args []any) {
	if l.muted.Load() || slices.ContainsFunc(args, func(a any) bool { return a == errDeviceKept }) {
		return
	}
	l.log.Log(context.Background(), level, "whatsapp: "+redact(format, args), "module", l.module)
}

var longNumber = regexp.MustCompile(`[0-9]{4,}([0-9]{4})`)

// redact writes a line without what must not be in a log: of a stanza only its name is left, of a long
// number only its end, and of a long text, which may be a stranger's, only its beginning.
func redact(format string, args []any) string {
	clean := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case *waBinary.Node:
			clean[i] = "<" + arg.Tag + ">"
		case waBinary.Node:
			clean[i] = "<" + arg.Tag + ">"
		case error:
			clean[i] = truncate(fmt.Sprint(arg))
		case string:
			clean[i] = truncate(arg)
		default:
			clean[i] = arg
		}
	}
	return maskNumbers(fmt.Sprintf(format, clean...))
}

// maskNumbers leaves only the ends of long numbers.
func maskNumbers(text string) string { return longNumber.ReplaceAllString(text, "…$1") }

// maxLogged is how much of a text is logged, in bytes: whatsmeow repeats in its errors what a sender wrote.
const maxLogged = 200

// truncate cuts a text that is too long for a log, between two characters. Its numbers are shortened before
// that: half of one would not be known as a number.
func truncate(text string) string {
	text = strings.ToValidUTF8(maskNumbers(text), "")
	if len(text) <= maxLogged {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:maxLogged-len(more)], "") + more
}

// discardLogger takes what libsignal would print to stdout.
type discardLogger struct{}

func (discardLogger) Debug(string, string)   {}
func (discardLogger) Info(string, string)    {}
func (discardLogger) Warning(string, string) {}
func (discardLogger) Error(string, string)   {}
func (discardLogger) Configure(string)       {}

// configureLibraries sets what these libraries keep in variables of the whole process: where libsignal logs, how it
// writes sessions, and the name that a phone shows in its list of linked devices.
var configureLibraries = sync.OnceFunc(func() {
	var quiet signallog.Loggable = discardLogger{}
	signallog.Setup(&quiet)
	keystore.UseCompactSessions()
	store.DeviceProps.Os = new("Parley")
})
