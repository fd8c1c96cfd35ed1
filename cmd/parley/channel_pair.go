package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
	"parley/internal/app"
	"parley/internal/client"
)

// passkeyHelp is what a person needs to know of passkeys.
const passkeyHelp = `An account that is protected by a passkey asks for it when a device is linked, and only a phone or a
computer that has the passkey can give it: this program cannot. Take the passkey off on the phone
(Settings, Account, Passkeys), pair the channel, and set the passkey again afterwards.`

// pairFlags say how somebody wants to pair a channel.
type pairFlags struct {
	number string // by a code for this number; empty: by QR codes
	link   bool
	png    string
}

func (f *pairFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.number, "code", "", "pair by a code to type on the phone with this number, for example +6281211112222")
	flags.BoolVar(&f.link, "link", false, "print a link by which somebody else pairs it: it works once, for an hour")
	flags.StringVar(&f.png, "png", "", "write the QR code to this file, which is removed at the end")
}

// check says what is wrong with the flags, and brings the number into its digits.
func (f *pairFlags) check() error {
	if count := index(f.number != "") + index(f.link) + index(f.png != ""); count > 1 {
		return fail(exitUsage, "--code, --link and --png are three ways: give one of them")
	}
	if f.number == "" {
		return nil
	}
	var err error
	f.number, err = digits(f.number)
	return err
}

func (c *cli) channelPair() *cobra.Command {
	var flags pairFlags
	cmd := &cobra.Command{
		Use:   "pair CODE",
		Short: "Link a channel to an account, by QR code or by a code to type",
		Long: `Link a channel to the account of a phone: by a QR code that the phone scans, or with --code by a code
that is typed on it. With --json every step is one line of JSON. The server must be running.

` + passkeyHelp,
		Example: `  parley channel pair toko
  parley channel pair toko --code +6281211112222`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			return c.onServer(cmd, func(ctx context.Context, cl *client.Client) error { return c.pair(ctx, cl, args[0], flags) })
		},
	}
	flags.add(cmd.Flags())
	settingFlags(cmd.Flags(), keyURL, keyAdminToken)
	return cmd
}

func readChannel(ctx context.Context, cl *client.Client, code string) (ch client.Channel, err error) {
	_, err = cl.Get(ctx, client.Path("channels", code), nil, &ch)
	return ch, orMissing(err, "channel", code)
}

// pair pairs a channel as the flags say.
func (c *cli) pair(ctx context.Context, cl *client.Client, code string, flags pairFlags) error {
	ch, err := readChannel(ctx, cl, code)
	switch {
	case err != nil:
		return err
	case flags.link:
		return c.pairLink(ctx, cl, code)
	case ch.Network != parley.WhatsApp:
		return c.pairAtOnce(ctx, cl, code)
	}
	view, err := c.pairView(ctx, cl, code, flags)
	if err != nil {
		return err
	}
	defer view.close()
	p := &pairer{cl: cl, code: code, number: flags.number, view: view}
	for {
		err := p.attempt(ctx)
		if !errors.Is(err, errNobody) {
			return err
		}
		again, asking := c.wantsNewCodes(ctx, code, flags)
		if asking != nil || !again {
			return asking
		}
	}
}

// pairAtOnce pairs a channel whose network asks nobody.
func (c *cli) pairAtOnce(ctx context.Context, cl *client.Client, code string) error {
	r, err := cl.Post(ctx, client.Path("channels", code, "pair"), nil, nil)
	if err != nil {
		return err
	}
	if err := printData(c, r, func(ch *client.Channel) { fmt.Fprintln(c.out, ch.Status) }); err != nil {
		return err
	}
	if !c.quiet && !c.json {
		fmt.Fprintf(c.err, "%s is a sandbox channel: it has simulated phones, so there is nothing to pair\n", code)
	}
	return nil
}

// madeLink is a link by which somebody else pairs a channel.
type madeLink struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

func makeLink(ctx context.Context, cl *client.Client, code string) (link madeLink, err error) {
	_, err = cl.Post(ctx, client.Path("channels", code, "pair-link"), nil, &link)
	return link, err
}

func (c *cli) pairLink(ctx context.Context, cl *client.Client, code string) error {
	link, err := makeLink(ctx, cl, code)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(link)
	}
	fmt.Fprintln(c.out, link.URL)
	c.hint("works once, until %s, for %s only", link.ExpiresAt.Local().Format("15:04"), code)
	if strings.HasPrefix(link.URL, "http://127.") || strings.HasPrefix(link.URL, "http://localhost") || strings.HasPrefix(link.URL, "http://[::1]") {
		c.hint("This address is for this machine alone. Where a proxy is in front, put its address there in place of %s", cl.Base)
	}
	return nil
}

// errNobody says that nobody linked the channel in time.
var errNobody = errors.New("nobody linked it in time")

// wantsNewCodes asks a person whether to go on. Where there is none to ask, that is the end.
func (c *cli) wantsNewCodes(ctx context.Context, code string, flags pairFlags) (again bool, err error) {
	nobody, new := "Nobody scanned in 2 min 40 s.", "new codes"
	if flags.number != "" {
		nobody, new = "Nobody typed the code in 2 min 40 s.", "a new one"
	}
	if c.json || c.noInput || !c.inTerminal {
		return false, fail(exitNeedsPerson, "%s Pair again with: parley channel pair %s", nobody, code)
	}
	typed, err := c.ask(ctx, fmt.Sprintf("%s Press Enter for %s, q to stop. ", nobody, new))
	if err != nil {
		return false, err
	}
	if strings.HasPrefix(strings.ToLower(typed), "q") {
		return false, fail(exitNeedsPerson, "channel %s is not paired", code)
	}
	return true, nil
}

// ask asks a person at the terminal and returns the line that was typed.
func (c *cli) ask(ctx context.Context, question string) (string, error) {
	fmt.Fprint(c.err, question)
	type line struct {
		text string
		err  error
	}
	typed := make(chan line, 1)
	go func() { // ends with the process if nobody types
		text, err := typedLine(c.in)
		typed <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case l := <-typed:
		if l.err != nil {
			return "", fail(exitNeedsPerson, "nobody answered")
		}
		return strings.TrimSpace(l.text), nil
	}
}

// typedLine reads up to the end of a line and not one byte more, so that the next question finds its answer.
func typedLine(r io.Reader) (string, error) {
	var b strings.Builder
	one := make([]byte, 1)
	for {
		n, err := r.Read(one)
		switch {
		case n == 1 && one[0] == '\n':
			return b.String(), nil
		case n == 1:
			b.WriteByte(one[0])
		case err == io.EOF && b.Len() > 0:
			return b.String(), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// showAccount writes whose account a channel is linked to.
func showAccount(ch client.Channel) string {
	if ch.Number == "" {
		return ch.Name
	}
	return app.ShowNumber(ch.Number)
}

const (
	pairPoll    = 300 * time.Millisecond // how often the server is asked how a pairing goes
	workingWait = time.Minute            // how long a paired channel may take to work
)

// workingStep is the last step that a view is shown: the channel works.
const workingStep parley.PairingStep = "working"

// pairStep is a step of a pairing.
type pairStep struct {
	client.Pairing
	channel client.Channel // with the last step
}

func newStep(step parley.PairingStep, ch client.Channel) *pairStep {
	return &pairStep{client.Pairing{Step: step}, ch}
}

// left is for how long its code can be used.
func (s *pairStep) left() time.Duration { return max(0, time.Until(s.ExpiresAt)) }

func (s *pairStep) is(other *pairStep) bool {
	return s.Step == other.Step && s.Code == other.Code && s.At.Equal(other.At)
}

// pairView shows the steps of a pairing to a person, or to a program.
type pairView interface {
	show(ctx context.Context, s *pairStep) error // a step has begun
	tick(s *pairStep)                            // it goes on
	close()
}

// pairer pairs one channel on a running server.
type pairer struct {
	cl     *client.Client
	code   string
	number string
	view   pairView
}

// attempt begins to pair and shows how it goes, until the channel works or cannot.
func (p *pairer) attempt(ctx context.Context) error {
	last, err := p.read(ctx) // what an attempt of before left is no news
	if err != nil {
		return err
	}
	var body any
	if p.number != "" {
		body = map[string]string{"number": p.number}
	}
	if _, err := p.cl.Post(ctx, client.Path("channels", p.code, "pair"), body, nil); err != nil {
		return err
	}
	if err := p.view.show(ctx, newStep(parley.StartingStep, client.Channel{})); err != nil { // which may be over before we ask
		return err
	}
	for {
		s, err := p.read(ctx)
		if err != nil {
			return err
		}
		if s.is(last) || s.Step == parley.StartingStep && s.Reason == "" {
			p.view.tick(s)
		} else if err := p.news(ctx, s); err != nil || s.Step == parley.PairedStep {
			return err
		}
		last = s
		if err := pause(ctx, pairPoll); err != nil {
			return err
		}
	}
}

// news shows a step that has begun. An error is the end of the attempt.
func (p *pairer) news(ctx context.Context, s *pairStep) error {
	if s.Step == "" {
		ch, err := readChannel(ctx, p.cl, p.code)
		if err != nil {
			return err
		}
		return fail(exitNotSo, "channel %s is not being paired any more: it is %s. %s", p.code, ch.Status, ch.Reason)
	}
	if s.Code == "" && (s.Step == parley.QRStep || s.Step == parley.CodeStep || s.Step == parley.WrongCodeStep) {
		return nil // it has just expired
	}
	if err := p.view.show(ctx, s); err != nil {
		return err
	}
	switch s.Step {
	case parley.PairedStep:
		return p.awaitWorking(ctx)
	case parley.TimeoutStep:
		return errNobody
	case parley.PasskeyStep:
		return fail(exitNeedsPerson, "%s Why: parley help passkey", s.Reason)
	case parley.FailedStep:
		return fail(exitRefused, "%s", s.Reason)
	}
	return nil
}

// awaitWorking waits until a channel that was just paired works.
func (p *pairer) awaitWorking(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, workingWait, fail(exitNotSo, "channel %s was paired and does not work yet. See: parley channel show %s", p.code, p.code))
	defer cancel()
	for {
		ch, err := readChannel(ctx, p.cl, p.code)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		switch ch.Status {
		case parley.Working:
			return p.view.show(ctx, newStep(workingStep, ch))
		case parley.LoggedOut, parley.Failed, parley.Stopped:
			return fail(exitNotSo, "channel %s is %s. %s", p.code, ch.Status, ch.Reason)
		}
		if err := pause(ctx, pairPoll); err != nil {
			return context.Cause(ctx)
		}
	}
}

// read asks for the latest step; one without a name: there is none.
func (p *pairer) read(ctx context.Context) (*pairStep, error) {
	s := &pairStep{}
	_, err := p.cl.Get(ctx, client.Path("channels", p.code, "pairing"), nil, &s.Pairing)
	return s, err
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
