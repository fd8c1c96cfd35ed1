package api

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/network"
	"parley/internal/store"
)

// accountField is the field of a request that has the account of a channel on a network with credentials, and of the response that
// describes it.
const accountField = "cloud"

var (
	metaID    = regexp.MustCompile(`^[0-9]{1,32}$`)
	sixDigits = regexp.MustCompile(`^[0-9]{6}$`)
)

// account reads the credentials of a channel on a network, as JSON; nil: none are given. A new channel needs all of them.
func (s *server) account(r *request, on parley.NetworkName, isNew bool) []byte {
	_, needed := s.enroller(on)
	if !needed {
		if r.Has(accountField) {
			r.Fail(accountField, "is for another network than %s.", on)
		}
		return nil
	}
	f, given := r.Object(accountField, true)
	if !given {
		return nil
	}
	fields := map[string]string{}
	for _, c := range s.config.Gateway.Network(on).Credentials {
		switch {
		case !f.Has(c.Name) && (!isNew || c.Kind == network.CredentialURL || c.Kind == network.CredentialChoice):
		case c.Kind == network.CredentialChoice:
			fields[c.Name] = f.Choice(c.Name, true, c.Choices...)
		case c.Kind == network.CredentialID:
			fields[c.Name] = f.Matching(c.Name, metaID, "an id of digits, as Meta shows it")
		default:
			fields[c.Name] = f.Text(c.Name, 1, 2000)
		}
	}
	if f.Has("pin") {
		fields["pin"] = f.Matching("pin", sixDigits, "the six digits of the number's PIN")
	}
	text, _ := json.Marshal(fields) // of texts only
	return text
}

func (s *server) enroller(name parley.NetworkName) (network.Enroller, bool) {
	e, ok := s.config.Gateway.Drivers[name].(network.Enroller)
	return e, ok
}

// checkAccount has the network check an account, before anything is stored; nil: its network needs none.
func (s *server) checkAccount(ctx context.Context, c parley.Channel, given []byte) ([]byte, error) {
	e, needed := s.enroller(c.Network)
	if !needed {
		return nil, nil
	}
	return e.CheckAccount(ctx, c, given)
}

// setAccount stores a checked account, and tells the network where to call us.
func (s *server) setAccount(ctx context.Context, c parley.Channel, checked []byte) error {
	e, needed := s.enroller(c.Network)
	if !needed {
		return nil
	}
	address := ""
	if s.config.PublicURL != "" {
		address = strings.TrimRight(s.config.PublicURL, "/") + "/network/" + string(c.Network) + "/" + string(c.Code)
	}
	return e.SetAccount(ctx, c, checked, address)
}

// describeAccount returns what may be shown of a channel's account; nil: it has none.
func (s *server) describeAccount(ctx context.Context, c parley.Channel, whole bool) any {
	e, needed := s.enroller(c.Network)
	if !needed {
		return nil
	}
	account, err := e.Account(ctx, c, whole)
	if err != nil {
		s.config.Log.Warn("the account of a channel cannot be read", "channel", c.Code, "error", err)
	}
	return account
}

// changeAccount replaces credentials of a channel. Those that are not given stay. What the network signed with the old ones is
// accepted for a day.
func (s *server) changeAccount(ctx context.Context, r *request) (any, error) {
	c, err := s.channelNamed(ctx, r.code())
	if err != nil {
		return nil, notFoundAs(err, errNoChannel)
	}
	if _, needed := s.enroller(c.Network); !needed {
		return nil, parley.Errorf(parley.NotSupported, "Channel %s is on %s, which has no credentials. Pair it instead.",
			c.Code, s.config.Gateway.Network(c.Network).Title)
	}
	given := s.account(r, c.Network, false)
	if err := r.Err(); err != nil {
		return nil, err
	}
	checked, err := s.checkAccount(ctx, c, given)
	if err == nil {
		err = s.setAccount(ctx, c, checked)
	}
	if err == nil {
		err = s.tx(ctx, func(tx *store.Tx) error { return r.auditTx(ctx, tx, change{object: string(c.Code)}) })
	}
	return s.accountResponse(ctx, "Credentials changed", c, err)
}

// accountResponse is channelResponse with what operators need to set a channel up.
func (s *server) accountResponse(ctx context.Context, sentence string, c parley.Channel, err error) (any, error) {
	if err != nil {
		return nil, notFoundAs(err, errNoChannel)
	}
	row := s.channel(c, s.channelActivity(ctx, []parley.Channel{c})[c.Code])
	row.Cloud = s.describeAccount(ctx, c, true)
	return ok(sentence, row), nil
}

const (
	minUnknownWait = 10 * time.Second // a status takes a few seconds
	maxUnknownWait = time.Hour
)

var templateName = regexp.MustCompile(`^[a-z0-9_]{1,512}$`)

// cloudSettings reads the settings of a channel on the official network.
func cloudSettings(f form.Form) *parley.CloudSettings {
	var c parley.CloudSettings
	if f.IsObject("outside_window") {
		c.OutsideWindow = templateSetting(f, "outside_window")
	} else {
		f.Choice("outside_window", false, "fail")
	}
	c.OnUnknown = parley.UnknownAction(f.Choice("on_unknown", false, string(parley.ResendUnknown), string(parley.FailUnknown)))
	if c.OnUnknown == parley.ResendUnknown {
		c.OnUnknown = "" // the default
	}
	if d := f.Duration("unknown_wait", minUnknownWait, maxUnknownWait); d != nil {
		c.UnknownWait = *d
	}
	c.Codes = templateSetting(f, "codes")
	c.MarkRead = f.Bool("mark_read", false)
	return &c
}

func templateSetting(f form.Form, name string) *parley.TemplateName {
	inside, given := f.Object(name, false)
	if !given {
		return nil
	}
	return &parley.TemplateName{Name: inside.Matching("template", templateName, "the name of a template: lower-case letters, digits and _"),
		Language: inside.Text("language", 2, 15)}
}
