package cloud

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/network"
)

// session is a channel while it runs.
type session struct {
	d       *Driver
	channel identity
	cloud   *parley.CloudSettings // as it was opened
	sink    network.Sink
	opened  time.Time
	ctx     context.Context // until Close
	end     func()
	chats   [16]sync.Mutex // events of one chat come one by one

	inFlight atomic.Int64 // messages whose response is not stored yet
	ending   sync.RWMutex // held for reading while Meta's id of a message is being stored

	mu          sync.Mutex
	running     sync.WaitGroup // what Close waits for; it grows with mu held only
	closed      bool
	timer       *time.Timer // of the next check
	failed      int         // checks in a row
	checking    bool        // one is under way
	recheck     bool        // another one was wanted meanwhile
	state       network.State
	number      phoneNumber           // as the last check found it; zero: none succeeded
	checked     time.Time             // when that was
	templates   []parley.TemplateInfo // as of templatesAt
	templatesAt time.Time

	codes   string    // the status of the template of one-time codes; empty: not known, or there is none
	rate    float64   // messages per second, in and out
	next    time.Time // when the next one may leave
	pauses  int       // of the channel in a row
	refused map[parley.ContactID]int
	seen    seen
	noticed map[string]string // the last notice about each thing
}

// identity names a channel. There may be thousands of idle ones.
type identity struct {
	ID   int64
	Code parley.ChannelCode
}

const (
	usualRate = 80
	highRate  = 1000
	coexists  = 20 // of a number that is used with the Business app too
	// slack is how much of the rate may be used at once after a pause.
	slack = 100 * time.Millisecond
)

// Limits are one message per call, and as many calls as the rate needs at about 300 ms each.
func (s *session) Limits() (burst, calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rate > usualRate {
		return 1, 256
	}
	return 1, 32
}

func (s *session) Close() error {
	s.mu.Lock()
	s.closed = true
	s.timer.Stop()
	s.mu.Unlock()
	s.end()
	s.running.Wait()
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.d.sessions[s.channel.Code] == s {
		delete(s.d.sessions, s.channel.Code)
	}
	return nil
}

// enter begins something that Close waits for. It returns false after Close.
func (s *session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}

func (s *session) settings() parley.CloudSettings {
	current := s.cloud
	if s.d.config.Settings != nil {
		current = s.d.config.Settings(s.channel.Code).Cloud
	}
	if current == nil {
		return parley.CloudSettings{}
	}
	return *current
}

// account is the current account; the API may change it while the session is open.
func (s *session) account(ctx context.Context) (account, error) {
	a, _, err := s.d.account(ctx, parley.Channel{ID: s.channel.ID, Code: s.channel.Code, Network: parley.Cloud})
	return a, err
}

// setState reports a state, unless it is the one that was reported last.
func (s *session) setState(ctx context.Context, to network.State) error {
	s.mu.Lock()
	if to.Phone == (network.Phone{}) {
		to.Phone = s.state.Phone
	}
	same := s.state == to
	s.state = to
	s.mu.Unlock()
	if same {
		return nil
	}
	return s.sink(ctx, to)
}

// breakDown reports that nothing can be sent until somebody acts. A sentence that ends with a command needs the channel.
func (s *session) breakDown(reason string) {
	if !strings.HasSuffix(reason, ".") {
		reason += " " + string(s.channel.Code)
	}
	if err := s.setState(s.ctx, network.State{Status: parley.ChannelFailed, Reason: reason}); err != nil {
		s.d.config.Log.Error("report a state", "channel", s.channel.Code, "error", err)
	}
}

// reserve takes a place in the rate of the number and returns how long to wait for it.
func (s *session) reserve() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if earliest := now.Add(-slack); s.next.Before(earliest) {
		s.next = earliest
	}
	wait := s.next.Sub(now)
	s.next = s.next.Add(time.Duration(float64(time.Second) / s.rate))
	return max(0, wait)
}

// maxChatPauses bounds the pauses of a contact: 1, 4, 16, 64, 256 seconds.
const maxChatPauses = 4

// chatPause is how long a contact gets nothing after Meta refused a message because of too many.
func (s *session) chatPause(to parley.ContactID) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = map[parley.ContactID]int{}
	}
	n := s.refused[to]
	s.refused[to] = min(n+1, maxChatPauses)
	return time.Second << (2 * n)
}

// channelPause is how long the channel sends nothing: what Meta says, else 1 s and doubling.
func (s *session) channelPause(said time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := time.Second << min(s.pauses, 8)
	s.pauses++
	return max(said, own)
}

// accepted ends the pauses after Meta accepted a message.
func (s *session) accepted(to parley.ContactID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pauses = 0
	delete(s.refused, to)
}

const (
	defaultUnknownWait = 2 * time.Minute
	codeUnknownWait    = 15 * time.Second // a late code is worse than the same code twice
)

// unknownWait is how long to wait for a status after a response was lost.
func (s *session) unknownWait(isCode bool) time.Duration {
	wait := defaultUnknownWait
	if own := time.Duration(s.settings().UnknownWait); own > 0 {
		wait = own
	}
	if isCode {
		wait = min(wait, codeUnknownWait)
	}
	return wait
}
