package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	signallog "go.mau.fi/libsignal/logger"
	waBinary "go.mau.fi/whatsmeow/binary"
	waLog "go.mau.fi/whatsmeow/util/log"

	"parley"
	"parley/internal/network/whatsapp/keystore"
)

// logger passes on warnings and errors of whatsmeow, without stanzas and full numbers.
type logger struct {
	log    *slog.Logger
	muted  *atomic.Bool // set when the connection is closed: later logs are noise
	module string
	// received is called with every stanza before whatsmeow handles it; nil: not called.
	received func(*waBinary.Node)
	tapped   string // the part of whatsmeow that logs them
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

// receiveLog is the part of whatsmeow that logs each stanza that comes, and nothing else.
const receiveLog = "Recv"

// Sub names a part of whatsmeow.
func (l *logger) Sub(module string) waLog.Logger {
	sub := logger{log: l.log, muted: l.muted, module: module}
	if module == l.tapped && l.received != nil {
		return &stanzaTap{sub, l.received}
	}
	return &sub
}

// stanzaTap is not a log. whatsmeow logs each stanza before it handles it on its own goroutine, where a panic would end
// the process. This is the only place to intercept stanzas (stanzas.go): it has no hook for them. If that log line changed,
// TestStanzaLogLine would fail, and a channel would fail at its login (noStanzaSeen).
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
	if l.muted.Load() || slices.ContainsFunc(args, isExpected) {
		return
	}
	l.log.Log(context.Background(), level, "whatsapp: "+redact(format, args), "module", l.module)
}

// isExpected reports whether an error is one of ours that whatsmeow logs though all is well.
func isExpected(arg any) bool {
	err, _ := arg.(error)
	return errors.Is(err, errDeviceKept) || errors.Is(err, errAskedLater)
}

var longNumber = regexp.MustCompile(`[0-9]{4,}([0-9]{4})`)

// redact removes stanza contents, all but the end of long numbers, and all but the start of long texts.
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

func maskNumbers(text string) string { return longNumber.ReplaceAllString(text, "…$1") }

// maxLogged bounds logged texts, in bytes: whatsmeow's errors repeat what a sender wrote.
const maxLogged = 200

// truncate cuts a long text between two characters. It masks numbers first: half a number would not be recognised.
func truncate(text string) string {
	text = strings.ToValidUTF8(maskNumbers(text), "")
	if len(text) <= maxLogged {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:maxLogged-len(more)], "") + more
}

// discardLogger drops what libsignal would print to stdout.
type discardLogger struct{}

func (discardLogger) Debug(string, string)   {}
func (discardLogger) Info(string, string)    {}
func (discardLogger) Warning(string, string) {}
func (discardLogger) Error(string, string)   {}
func (discardLogger) Configure(string)       {}

// configureLibraries sets process-wide variables: libsignal's logger and session format.
var configureLibraries = sync.OnceFunc(func() {
	var quiet signallog.Loggable = discardLogger{}
	signallog.Setup(&quiet)
	keystore.UseCompactSessions()
})
