package otp

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/postgrestest"
	"parley/internal/store"
)

// twoNodes makes a second issuer with a connection of its own. While a channel is handed over, both may serve it.
func twoNodes(t *testing.T, b *bench) [2]*Issuer {
	t.Helper()
	if !postgrestest.Running() {
		t.Skip("only nodes on PostgreSQL share a database")
	}
	first := b.Issuer
	b.open(b.config.Keyring)
	second := b.Issuer
	b.Issuer = first
	t.Cleanup(func() { second.config.Store.Close() })
	return [2]*Issuer{first, second}
}

// atOnce has both nodes do something at the same time, many times.
func atOnce(nodes [2]*Issuer, many int, do func(node *Issuer, n int)) {
	for n := range many {
		var both sync.WaitGroup
		start := make(chan struct{})
		for _, node := range nodes {
			both.Go(func() {
				<-start
				do(node, n)
			})
		}
		close(start)
		both.Wait()
	}
}

func someContact(n int) parley.ContactID { return parley.ContactID(fmt.Sprintf("62812%08d@c.us", n)) }

func TestTwoNodesApproveACodeOnce(t *testing.T) {
	const many = 100
	b := newBench(t, filepath.Join(t.TempDir(), "parley.db"))
	nodes := twoNodes(t, b)
	codes := make([]string, many)
	for n := range codes {
		codes[n] = b.code(main, someContact(n))
	}
	var statuses [5]atomic.Int64
	atOnce(nodes, many, func(node *Issuer, n int) {
		try, err := node.Validate(context.Background(), main, someContact(n), codes[n], nil)
		if err != nil {
			t.Error(err)
		}
		statuses[try.Status].Add(1)
	})
	approved, invalid := statuses[parley.OTPStatusApproved].Load(), statuses[parley.OTPStatusInvalid].Load()
	if approved != many || invalid != many {
		t.Errorf("of %d codes tried on two nodes at once, %d tries were approved and %d invalid", many, approved, invalid)
	}
	if events := b.events(); len(events) != many {
		t.Errorf("%d events, want %d", len(events), many)
	}
}

func TestTwoNodesCountAllWrongTries(t *testing.T) {
	b := newBench(t, filepath.Join(t.TempDir(), "parley.db"))
	nodes := twoNodes(t, b)
	code := b.code(main, ayu)
	var wrongTries atomic.Int64
	atOnce(nodes, parley.MaxOTPTries, func(node *Issuer, n int) {
		try, err := node.Validate(context.Background(), main, ayu, wrong(code), nil)
		if err != nil {
			t.Error(err)
		}
		if try.Status == parley.OTPStatusInvalid {
			wrongTries.Add(1)
		}
	})
	if n := wrongTries.Load(); n != parley.MaxOTPTries-1 {
		t.Errorf("%d wrong tries before the code was locked, want %d", n, parley.MaxOTPTries-1)
	}
}

func TestTwoNodesApproveALinkOnce(t *testing.T) {
	const many = 50
	b := newBench(t, filepath.Join(t.TempDir(), "parley.db"))
	nodes := twoNodes(t, b)
	links := make([]parley.OTPLink, many)
	now := time.Now().UTC().Truncate(time.Millisecond)
	for n := range links {
		links[n] = parley.OTPLink{ID: parley.NewLinkID(), Channel: main, Contact: someContact(n), Hash: []byte{byte(n)},
			CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
		b.must(b.config.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.AddLink(t.Context(), links[n]) }))
	}
	channel := parley.Channel{Code: main, Network: parley.Sandbox}
	atOnce(nodes, many, func(node *Issuer, n int) {
		err := node.config.Store.Tx(context.Background(), func(tx *store.Tx) error {
			_, err := node.Redeem(context.Background(), tx, channel, &Hit{match{link: links[n]}, parley.LinkTry{From: links[n].Contact, At: now}})
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	if events := b.events(); len(events) != many {
		t.Errorf("%d approvals of %d links", len(events), many)
	}
}

// The database may fail after it used a code. The caller got an error, so its next try must not find the code used. Nobody else
// gains a second use.
func TestCodeIsUsedOnceThoughTheDatabaseFailed(t *testing.T) {
	unavailable := parley.Errorf(parley.Unavailable, "The database does not work now.")
	for _, committed := range []bool{true, false} {
		for fails := range 3 {
			t.Run(fmt.Sprintf("committed %t, failures %d", committed, fails), func(t *testing.T) {
				b := newBench(t, "memory:"+fmt.Sprint("fails", committed, fails))
				left := fails
				b.tx = func(ctx context.Context, do func(*store.Tx) error) error {
					if left--; left < 0 {
						return b.config.Store.Tx(ctx, do)
					}
					err := b.config.Store.Tx(ctx, func(tx *store.Tx) error {
						if err := do(tx); err != nil || committed {
							return err
						}
						return unavailable
					})
					if err == nil {
						err = unavailable
					}
					return err
				}
				code := b.code(main, ayu)
				try, err := b.Validate(t.Context(), main, ayu, code, nil)
				if gotError := err != nil; gotError != (fails == 2) {
					t.Fatalf("the first try: %+v, %v", try, err)
				}
				if err != nil { // the caller tries again
					b.wants(main, ayu, wrong(code), parley.OTPStatusInvalid, map[bool]int{true: 0, false: 4}[committed])
					b.wants(main, ayu, code, parley.OTPStatusApproved, 0)
				} else if try.Status != parley.OTPStatusApproved {
					t.Errorf("the first try was %s", try.Status)
				}
				for range 3 {
					b.wants(main, ayu, code, parley.OTPStatusInvalid, 0)
				}
				b.wantsEvents("otp.approved")
				if len(b.unsure) != 0 {
					t.Errorf("%d approvals can still be repeated", len(b.unsure))
				}
			})
		}
	}
}
