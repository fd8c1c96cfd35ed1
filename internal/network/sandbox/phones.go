package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// Phone is a simulated phone as it stands.
type Phone struct {
	Number    string // digits
	Name      string // a phone with a name is a contact of the channel
	Online    bool
	Reads     Reads
	Delay     time.Duration // before it tells that something was delivered
	Blocks    bool          // refuses the channel's messages
	OnNetwork bool
	LIDOnly   bool // the network names it by a LID instead of its number
	Answers   bool // answers every message

	TypingUntil time.Time // until when it shows that the channel is typing; zero: it does not
	LastSeenAt  time.Time // zero: not known
}

// Reads says when a phone reads what it gets.
type Reads string

const (
	AtOnce   Reads = "at_once"   // as soon as it is delivered
	WhenOpen Reads = "when_open" // when somebody opens the chat: [Network.Read]
	Never    Reads = "never"     // not even then: its owner switched read receipts off
)

// NewPhone says what phone to make.
type NewPhone struct {
	Number string // empty: a free one is chosen
	Name   string
}

// PhonePatch says what to change about a phone; nil leaves it.
type PhonePatch struct {
	Name      *string
	Online    *bool
	Reads     *Reads
	Delay     *time.Duration
	Blocks    *bool
	OnNetwork *bool
	LIDOnly   *bool
}

const (
	maxName  = 100
	maxDelay = time.Minute

	// Free numbers are chosen from here upwards: 62812-9000-0001 and so on.
	freeFrom = 6281290000000
	freeTo   = 6281290999999
)

// Number returns the channel's own number.
func (n *Network) Number(ctx context.Context, channel parley.ChannelCode) (string, error) {
	w, err := n.world(ctx, channel)
	if err != nil {
		return "", err
	}
	return w.number, nil
}

// Phones lists the phones of a channel's world in the order in which they were made.
func (n *Network) Phones(ctx context.Context, channel parley.ChannelCode) ([]Phone, error) {
	w, err := n.world(ctx, channel)
	if err != nil {
		return nil, err
	}
	rows, err := n.db.Read(ctx).Query(`SELECT `+phoneColumns+` FROM phones WHERE world = $1 ORDER BY id`, w.id)
	if err != nil {
		return nil, fmt.Errorf("list phones: %w", err)
	}
	defer rows.Close()
	var list []Phone
	for rows.Next() {
		p, err := scanPhone(rows)
		if err != nil {
			return nil, fmt.Errorf("list phones: %w", err)
		}
		if live := w.cached(p.contact); live != nil {
			p = live // knows who is typing
		}
		list = append(list, p.view())
	}
	return list, rows.Err()
}

// Phone returns one phone, made if it was not there.
func (n *Network) Phone(ctx context.Context, channel parley.ChannelCode, number string) (Phone, error) {
	_, p, err := n.find(ctx, channel, number)
	if err != nil {
		return Phone{}, err
	}
	return p.view(), nil
}

// CreatePhone makes a phone. One that is there already is kept, and renamed if a name is given.
func (n *Network) CreatePhone(ctx context.Context, channel parley.ChannelCode, p NewPhone) (Phone, error) {
	if p.Number == "" {
		free, err := n.takeFreeNumber(ctx, channel)
		if err != nil {
			return Phone{}, err
		}
		p.Number = free
	}
	if p.Name == "" {
		return n.Phone(ctx, channel, p.Number)
	}
	return n.UpdatePhone(ctx, channel, p.Number, PhonePatch{Name: &p.Name})
}

// takeFreeNumber makes a phone with the lowest number above all that were chosen before.
func (n *Network) takeFreeNumber(ctx context.Context, channel parley.ChannelCode) (string, error) {
	w, err := n.world(ctx, channel)
	if err != nil {
		return "", err
	}
	var number string
	err = n.db.Write(ctx, func(tx *sqldb.Tx) error {
		var highest int64
		err := tx.QueryRow(`SELECT coalesce(max(CAST(number AS INTEGER)), $2) FROM phones
			WHERE world = $1 AND length(number) = 13 AND number BETWEEN $3 AND $4`,
			[]any{w.id, int64(freeFrom), strconv.Itoa(freeFrom), strconv.Itoa(freeTo)}, &highest)
		if err != nil {
			return err
		}
		number = strconv.FormatInt(highest+1, 10)
		_, err = findOrMake(tx, w.id, number)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("choose a number: %w", err)
	}
	return number, nil
}

// UpdatePhone changes how a phone behaves. One that comes online gets what waited for it; one that
// begins to read at once reads what it has.
func (n *Network) UpdatePhone(ctx context.Context, channel parley.ChannelCode, number string, patch PhonePatch) (Phone, error) {
	if err := patch.check(); err != nil {
		return Phone{}, err
	}
	w, p, err := n.find(ctx, channel, number)
	if err != nil {
		return Phone{}, err
	}
	err = n.db.Write(ctx, func(tx *sqldb.Tx) error {
		there, err := findOrMake(tx, w.id, p.number) // found again, should the world have been reset
		if err != nil {
			return err
		}
		changed, err := patch.apply(tx, there.id)
		if err != nil {
			return err
		}
		tx.OnCommit(func() {
			p = w.keep(there)
			p.behave(changed.traits)
		})
		return nil
	})
	if err != nil {
		return Phone{}, fmt.Errorf("update phone: %w", err)
	}
	if patch.Reads != nil && *patch.Reads == AtOnce {
		if _, err := n.Read(ctx, channel, number, ""); err != nil {
			return Phone{}, err
		}
	}
	w.mark(true, p)
	return p.view(), nil
}

// apply stores the change and returns the phone as it then is.
func (patch PhonePatch) apply(tx *sqldb.Tx, id int64) (*phone, error) {
	_, err := tx.Exec(`UPDATE phones SET name = coalesce($2, name), online = coalesce($3, online), reads = coalesce($4, reads),
		delay_ms = coalesce($5, delay_ms), blocks = coalesce($6, blocks), on_network = coalesce($7, on_network),
		lid_only = coalesce($8, lid_only), seen_at = CASE WHEN $3 IS NULL OR $3 = online THEN seen_at ELSE $9 END
		WHERE id = $1`,
		id, ifSet(patch.Name, same), ifSet(patch.Online, flag), ifSet(patch.Reads, func(r Reads) string { return string(r) }),
		ifSet(patch.Delay, time.Duration.Milliseconds), ifSet(patch.Blocks, flag), ifSet(patch.OnNetwork, flag), ifSet(patch.LIDOnly, flag), time.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	return queryPhone(tx.Conn, `SELECT `+phoneColumns+` FROM phones WHERE id = $1`, id)
}

// ifSet returns what the database is told of a value, or nil where it is to be left as it is.
func ifSet[T, V any](value *T, as func(T) V) any {
	if value == nil {
		return nil
	}
	return as(*value)
}

func same(s string) string { return s }

func (patch PhonePatch) check() error {
	var wrong []parley.FieldError
	if patch.Name != nil && len([]rune(*patch.Name)) > maxName {
		wrong = append(wrong, parley.FieldError{Field: "name", Sentence: fmt.Sprintf("name must have at most %d characters.", maxName)})
	}
	if patch.Reads != nil && *patch.Reads != AtOnce && *patch.Reads != WhenOpen && *patch.Reads != Never {
		wrong = append(wrong, parley.FieldError{Field: "reads", Sentence: "reads must be at_once, when_open or never."})
	}
	if patch.Delay != nil && (*patch.Delay < 0 || *patch.Delay > maxDelay) {
		wrong = append(wrong, parley.FieldError{Field: "delay_ms", Sentence: fmt.Sprintf("delay_ms must be between 0 and %d.", maxDelay.Milliseconds())})
	}
	if len(wrong) > 0 {
		return parley.InvalidFields(wrong)
	}
	return nil
}

// ParseNumber reads a phone number in any spelling and returns its digits.
func ParseNumber(s string) (string, error) {
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune("+-. ()\u00a0", r) {
			return -1
		}
		return r
	}, s)
	if _, err := parley.ParseContactID(string(parley.ContactOf(digits))); err != nil {
		return "", errors.New("not a phone number")
	}
	return digits, nil
}

// NumberSentence is what is said of a number that is none.
const NumberSentence = "number must be a phone number in digits, for example 6281234567890."

// find returns the world and the phone that a caller names.
func (n *Network) find(ctx context.Context, channel parley.ChannelCode, number string) (*world, *phone, error) {
	digits, err := ParseNumber(number)
	if err != nil {
		return nil, nil, parley.InvalidField("number", NumberSentence)
	}
	w, err := n.world(ctx, channel)
	if err != nil {
		return nil, nil, err
	}
	p, err := w.phone(ctx, parley.ContactOf(digits))
	return w, p, err
}
