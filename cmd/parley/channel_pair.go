package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
	"parley/internal/app"
	"parley/internal/client"
	"parley/internal/doctor"
	"parley/internal/wait"
	"parley/internal/wire"
)

type pairFlags struct {
	number string // by a code for this number; empty: by QR codes
	link   bool
	png    string
	// newNumber: the number is new, so the channel sends carefully. It is asked for on a terminal unless isOld.
	newNumber, isOld bool
	// passkey is the file in which a person puts the response of the account's passkey; empty: none is expected.
	passkey string
}

func (f *pairFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.number, "code", "", "pair by a code to type on the phone with this number, for example +6281211112222")
	flags.BoolVar(&f.link, "link", false, "print a link with which someone else can pair it; works once, for an hour")
	flags.StringVar(&f.passkey, "passkey-file", "",
		"where you put the response of the account's passkey, if it asks for it: parley help passkey")
	flags.BoolVar(&f.newNumber, "new-number", false, "the number is new to WhatsApp: send carefully, with 20 first messages a day at first")
	flags.BoolVar(&f.isOld, "no-new-number", false, "the number has been in use: do not ask, and set no caps")
	flags.StringVar(&f.png, "png", "", "write the QR code to this file; it is removed at the end")
}

// check rejects contradictory flags and reduces the number to its digits.
func (f *pairFlags) check() error {
	if count := oneIf(f.number != "") + oneIf(f.link) + oneIf(f.png != ""); count > 1 {
		return fail(exitUsage, "give only one of --code, --link and --png")
	}
	var err error
	f.number, err = optionalDigits(f.number)
	return err
}

func (c *cli) channelPair() *cobra.Command {
	var flags pairFlags
	cmd := &cobra.Command{
		Use:   "pair CODE",
		Short: "Link a channel to an account, by QR code or by a code to type",
		Long: `Link a channel to the account of a phone, which scans a QR code. With --code, you type a code on the phone
instead. With --json, every step is one line of JSON. The server must be running.

` + helpText("passkey.txt"),
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

func readChannel(ctx context.Context, cl *client.Client, code string) (ch wire.Channel, err error) {
	_, err = cl.Get(ctx, client.Path("channels", code), nil, &ch)
	return ch, explainNotFound(err, "channel", code)
}

func (c *cli) pair(ctx context.Context, cl *client.Client, code string, flags pairFlags) error {
	ch, err := readChannel(ctx, cl, code)
	switch {
	case err != nil:
		return err
	case flags.link:
		return c.pairLink(ctx, cl, code)
	case ch.Simulated:
		if waits, err := c.pairSandbox(ctx, cl, code); err != nil || !waits {
			return err
		}
	default:
		if err := c.setCareful(ctx, cl, ch, flags); err != nil {
			return err
		}
	}
	p := &pairer{cli: c, cl: cl, code: code, flags: flags}
	if err := p.prepare(); err != nil {
		return err
	}
	defer p.close()
	for {
		err := p.attempt(ctx)
		if !errors.Is(err, errPairTimeout) {
			return err
		}
		again, asking := c.wantsNewCodes(ctx, code, flags)
		if asking != nil || !again {
			return asking
		}
	}
}

// setCareful makes a channel careful whose number is new. On a terminal it asks, unless the channel was paired before or has caps.
func (c *cli) setCareful(ctx context.Context, cl *client.Client, ch wire.Channel, flags pairFlags) error {
	isNew := flags.newNumber
	if !isNew && !flags.isOld && ch.Number == "" && ch.Settings.Careful == nil && c.inTerminal && !c.noInput && !c.json && !c.quiet {
		typed, err := c.ask(ctx, "Is this number new to WhatsApp? WhatsApp bans new numbers that write to many people, so a careful channel "+
			"begins with 20 first messages a day. [y/N] ")
		if err != nil {
			return err
		}
		isNew = strings.HasPrefix(strings.ToLower(typed), "y")
	}
	if !isNew || ch.Settings.Careful != nil {
		return nil
	}
	ch.Settings.Careful = &parley.Careful{NewNumber: true}
	_, err := cl.Call(ctx, "PATCH", client.Path("channels", string(ch.Code)), nil, fields{"settings": ch.Settings}, nil)
	return err
}

// pairSandbox pairs a sandbox channel, which needs nobody. waits: its account asks for a passkey.
func (c *cli) pairSandbox(ctx context.Context, cl *client.Client, code string) (waits bool, err error) {
	var ch wire.Channel
	r, err := cl.Post(ctx, client.Path("channels", code, "pair"), nil, &ch)
	if err != nil || ch.Status == parley.ChannelScanQRCode {
		return err == nil, err
	}
	err = c.show(printStatus, r)
	if err == nil && !c.quiet && !c.json {
		fmt.Fprintf(c.err, "%s is a sandbox channel: it has simulated phones, so there is nothing to pair\n", code)
	}
	return false, err
}

// pairLinkData is a link with which somebody else can pair a channel.
type pairLinkData struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

func makeLink(ctx context.Context, cl *client.Client, code string) (link pairLinkData, err error) {
	_, err = cl.Post(ctx, client.Path("channels", code, "pair-link"), nil, &link)
	return link, err
}

func (c *cli) pairLink(ctx context.Context, cl *client.Client, code string) error {
	link, err := makeLink(ctx, cl, code)
	if err != nil {
		return err
	}
	if err := c.print(link, link.URL); err != nil || c.json {
		return err
	}
	c.hint("works once, until %s, for %s only", link.ExpiresAt.Local().Format("15:04"), code)
	if u, err := url.Parse(link.URL); err == nil && doctor.IsLoopback(u.Hostname()) {
		c.hint("This address works on this machine only. Behind a proxy, replace %s by the address of the proxy", cl.Base)
	}
	return nil
}

var errPairTimeout = errors.New("nobody linked it in time")

// wantsNewCodes asks whether to continue with new codes. Without a terminal it fails.
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

func showAccount(ch wire.Channel) string {
	if ch.Number == "" {
		return ch.Name
	}
	return app.ShowNumber(ch.Number)
}

const (
	pairPoll    = 300 * time.Millisecond // interval of requests for the step of a pairing
	workingWait = time.Minute            // how long a paired channel may take to work
)

// workingStep is the last step that a view shows: the channel works.
const workingStep parley.PairingStep = "working"

type pairStep struct {
	wire.PairingCode
	channel wire.Channel // with the last step
}

func newStep(step parley.PairingStep, ch wire.Channel) *pairStep {
	return &pairStep{wire.PairingCode{Pairing: wire.Pairing{Step: step}}, ch}
}

// left is how long its code stays valid.
func (s *pairStep) left() time.Duration { return max(0, time.Until(s.ExpiresAt.Time)) }

func (s *pairStep) is(other *pairStep) bool {
	return s.Step == other.Step && s.Code == other.Code && s.At.Equal(other.At.Time)
}

type pairer struct {
	*cli
	cl    *client.Client
	code  string
	flags pairFlags

	lines  int    // drawn below the header; zero: nothing is drawn
	header string // the current first line
}

func (p *pairer) attempt(ctx context.Context) error {
	last, err := p.read(ctx) // the last step of an earlier attempt is not shown
	if err != nil {
		return err
	}
	var body any
	if p.flags.number != "" {
		body = map[string]string{"number": p.flags.number}
	}
	if _, err := p.cl.Post(ctx, client.Path("channels", p.code, "pair"), body, nil); err != nil {
		return err
	}
	if err := p.show(ctx, newStep(parley.StartingStep, wire.Channel{})); err != nil { // it may be over before the first request
		return err
	}
	for {
		s, err := p.read(ctx)
		if err != nil {
			return err
		}
		if s.is(last) || s.Step == parley.StartingStep && s.Reason == "" {
			p.tick(s)
		} else if err := p.handleStep(ctx, s); err != nil || s.Step == parley.PairedStep {
			return err
		}
		last = s
		if !wait.Sleep(ctx, pairPoll) {
			return ctx.Err()
		}
	}
}

// handleStep shows a new step. An error ends the attempt.
func (p *pairer) handleStep(ctx context.Context, s *pairStep) error {
	if s.Step == "" {
		ch, err := readChannel(ctx, p.cl, p.code)
		if err != nil {
			return err
		}
		return fail(exitNegative, "channel %s is no longer being paired: it is %s. %s", p.code, ch.Status, ch.Reason)
	}
	if s.Code == "" && s.Passkey == nil && !s.Step.IsOver() && s.Step != parley.StartingStep {
		return nil // it has just expired
	}
	if err := p.show(ctx, s); err != nil {
		return err
	}
	switch s.Step {
	case parley.PairedStep:
		return p.awaitWorking(ctx)
	case parley.TimeoutStep:
		return errPairTimeout
	case parley.PasskeyStep:
		return p.answerPasskey(ctx, s)
	case parley.ConfirmStep:
		return p.confirmCode(ctx, s)
	case parley.FailedStep:
		return fail(exitRefused, "%s", s.Reason)
	}
	return nil
}

// answerPasskey tells how to answer the request for a passkey, and hands in the response once its file is there.
func (p *pairer) answerPasskey(ctx context.Context, s *pairStep) error {
	if p.flags.passkey == "" {
		return fail(exitNeedsPerson, "%s Pair again with --passkey-file FILE: see parley help passkey", s.Reason)
	}
	if !p.cli.json {
		fmt.Fprintf(p.cli.err, "%s\nRun this in the console of a browser on https://web.whatsapp.com, and write what it prints to %s:\n\n"+
			"navigator.credentials.get({publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(%s)}).then((c) => "+
			"console.log(JSON.stringify(c)))\n\n", s.Reason, p.flags.passkey, s.Passkey.Request)
	}
	for ; time.Now().Before(s.ExpiresAt.Time); wait.Sleep(ctx, pairPoll) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		response, err := os.ReadFile(p.flags.passkey)
		if err != nil || !json.Valid(response) { // not there yet, or half written
			continue
		}
		body := map[string]any{"assertion": json.RawMessage(response)}
		_, err = p.cl.Post(ctx, client.Path("channels", p.code, "pairing", "passkey"), body, nil)
		return err
	}
	return fail(exitNeedsPerson, "no response of the passkey was in %s in time. Pair again.", p.flags.passkey)
}

// confirmCode asks whether the code is the one on the phone.
func (p *pairer) confirmCode(ctx context.Context, s *pairStep) error {
	if p.cli.noInput || !p.cli.inTerminal {
		return fail(exitNeedsPerson, "a person must compare the code with the one on the phone. Pair at a terminal")
	}
	if _, err := p.cli.ask(ctx, fmt.Sprintf("If %s is the code on the phone, press Enter: ", s.Code)); err != nil {
		return err
	}
	_, err := p.cl.Post(ctx, client.Path("channels", p.code, "pairing", "passkey"), map[string]any{"confirmed": true}, nil)
	return err
}

func (p *pairer) awaitWorking(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, workingWait,
		fail(exitNegative, "channel %s was paired and does not work yet. See: parley channel show %s", p.code, p.code))
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
		case parley.ChannelWorking:
			return p.show(ctx, newStep(workingStep, ch))
		case parley.ChannelLoggedOut, parley.ChannelFailed, parley.ChannelStopped:
			return fail(exitNegative, "channel %s is %s. %s", p.code, ch.Status, ch.Reason)
		}
		if !wait.Sleep(ctx, pairPoll) {
			return context.Cause(ctx)
		}
	}
}

// read requests the latest step. It has no name if there is none.
func (p *pairer) read(ctx context.Context) (*pairStep, error) {
	s := &pairStep{}
	_, err := p.cl.Get(ctx, client.Path("channels", p.code, "pairing"), nil, &s.PairingCode)
	return s, err
}
