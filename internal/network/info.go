package network

import (
	"slices"
	"time"

	"parley"
)

// Info describes a network. What differs between networks is asked here, so that nobody else compares their names.
type Info struct {
	Name      parley.NetworkName
	Title     string // as people write it
	Simulated bool   // its phones are not real: nothing reaches a person
	// Pairing is how a channel gets its account; empty: by Credentials, or it has one from the start.
	Pairing []PairingMethod
	// Credentials are what a caller gives to get a channel its account. The driver is an [Enroller] then.
	Credentials []Credential
	Proxies     bool          // its channels may have a proxy of their own: its driver is [Proxied]
	Groups      bool          // its sessions are [Groups], and messages may be to groups
	Kinds       []parley.Kind // the messages and operations that its sessions send
	// LeastPace and MostPace bound the pause between two sends of a channel that has no pace of its own; zero: none.
	LeastPace, MostPace time.Duration
	// ReplyWindow is how long after a contact's last message it may be sent more than templates; zero: there is no such limit.
	ReplyWindow time.Duration
}

// PairingMethod is a way to pair an account.
type PairingMethod string

const (
	PairingByQR   PairingMethod = "qr"   // scan a code with the phone
	PairingByCode PairingMethod = "code" // type a code on the phone; its sessions are [PairByCode]
)

// Credential is one value that an account needs, by its name in requests.
type Credential struct {
	Name    string
	Kind    CredentialKind
	Choices []string // of the kind choice; the first is the default
}

// CredentialKind is how a value is asked for and checked.
type CredentialKind string

const (
	CredentialID     CredentialKind = "id"     // digits that the network shows
	CredentialSecret CredentialKind = "secret" // never shown again
	CredentialURL    CredentialKind = "url"    // where the network is; optional
	CredentialChoice CredentialKind = "choice" // one of Choices; optional
)

// Pace returns the least and the most time between two sends of a channel; zeros: none.
func (i Info) Pace(c parley.Channel) (least, most time.Duration) {
	if own := c.Settings.Pace; own != nil {
		return time.Duration(*own), time.Duration(*own)
	}
	return i.LeastPace, i.MostPace
}

// CanPair reports whether the network has a way to pair an account.
func (i Info) CanPair(by PairingMethod) bool { return slices.Contains(i.Pairing, by) }

// CanSend reports whether the network has a kind of message or operation.
func (i Info) CanSend(kind parley.Kind) bool { return slices.Contains(i.Kinds, kind) }
