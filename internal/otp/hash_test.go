package otp

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/encrypt"
)

func TestNormalise(t *testing.T) {
	for code, want := range map[string]string{
		"483920": "483920", " 483920\n": "483920", "\u00a0483920\u2003": "483920", "abCd": "ABCD", "": "", "  ": "",
		"48 39": "48 39", "48-39": "48-39", // blanks inside count
		"ſtre": "ſTRE", "ıı": "ıı", "４８３９": "４８３９", // what only looks like a character of a code is none
	} {
		if got := normalize(code); got != want {
			t.Errorf("%q: got %q, want %q", code, got, want)
		}
	}
}

func FuzzNormalise(f *testing.F) {
	for _, code := range []string{"483920", " abcd ", "ſ\x00ı", "\xff\xfe", "４８３９", "a\u0301b"} {
		f.Add(code)
	}
	f.Fuzz(func(t *testing.T, code string) {
		got := normalize(code)
		if again := normalize(got); again != got {
			t.Errorf("%q becomes %q and then %q", code, got, again)
		}
		if padded := normalize("\t " + code + " \n"); padded != got {
			t.Errorf("%q becomes %q with blanks around it, %q without", code, padded, got)
		}
		if len(got) > 3*len(code) {
			t.Errorf("%q becomes %q", code, got)
		}
		// A code that was drawn matches in either case and nothing else does.
		for _, drawn := range []string{"483920", "ABCD", "abcd"} {
			if (got == normalize(drawn)) != strings.EqualFold(strings.TrimSpace(code), drawn) {
				t.Errorf("%q matches %q", code, drawn)
			}
		}
	})
}

func TestHashIsValidForItsRowOnly(t *testing.T) {
	c := parley.OTPCode{ID: "otc_1", Channel: "main", Contact: "6281100000001@c.us"}
	hash := hashCode(sha256.New, []byte("pepper"), c, "483920")
	if len(hash) != 32 || !bytes.Equal(hash, hashCode(sha256.New, []byte("pepper"), c, " 483920 ")) {
		t.Fatal("the same code has another hash")
	}
	for name, other := range map[string][]byte{
		"code":    hashCode(sha256.New, []byte("pepper"), c, "483921"),
		"pepper":  hashCode(sha256.New, []byte("Pepper"), c, "483920"),
		"id":      hashCode(sha256.New, []byte("pepper"), parley.OTPCode{ID: "otc_2", Channel: c.Channel, Contact: c.Contact}, "483920"),
		"channel": hashCode(sha256.New, []byte("pepper"), parley.OTPCode{ID: c.ID, Channel: "other", Contact: c.Contact}, "483920"),
		"contact": hashCode(sha256.New, []byte("pepper"), parley.OTPCode{ID: c.ID, Channel: c.Channel, Contact: "6281100000002@c.us"}, "483920"),
		"parts":   hashCode(sha256.New, []byte("pepper"), parley.OTPCode{ID: "otc_1m", Channel: "ain", Contact: c.Contact}, "483920"),
	} {
		if bytes.Equal(hash, other) {
			t.Errorf("another %s has the same hash", name)
		}
	}
}

// After a new key was put above the old one, codes that were sent before still count.
func TestKeyRotation(t *testing.T) {
	dir := t.TempDir()
	keys := func(names ...string) *encrypt.Keyring {
		t.Helper()
		var all []byte
		for _, name := range names {
			open(t, filepath.Join(dir, name))
			key, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, key...)
		}
		path := filepath.Join(dir, strings.Join(names, "+"))
		if err := os.WriteFile(path, all, 0o600); err != nil {
			t.Fatal(err)
		}
		return open(t, path)
	}
	c := parley.OTPCode{ID: "otc_1", Channel: "main", Contact: "6281100000001@c.us"}
	old := New(Config{Keyring: keys("old")})
	c.Hash = hashCode(sha256.New, old.peppers[0], c, "483920")
	rotated := New(Config{Keyring: keys("new", "old")})
	if !rotated.matches(c, "483920") || rotated.matches(c, "483921") {
		t.Error("a code from before the rotation does not count any more")
	}
	c.Hash = hashCode(sha256.New, rotated.peppers[0], c, "483920")
	if !rotated.matches(c, "483920") || old.matches(c, "483920") {
		t.Error("a new code is hashed with the old key")
	}
	if c.Hash = nil; rotated.matches(c, "483920") {
		t.Error("where there is nothing to compare with, something matches")
	}
}

func open(t *testing.T, path string) *encrypt.Keyring {
	t.Helper()
	s, err := encrypt.OpenKeyFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// work is what it costs to find out whether a code is right.
type work struct {
	digests int // that were begun
	bytes   int // that were hashed
}

type countingHash struct {
	hash.Hash
	work *work
}

func (h *countingHash) Write(p []byte) (int, error) {
	h.work.bytes += len(p)
	return h.Hash.Write(p)
}

// TestEveryTryIsTheSameWork counts instead of taking the time, which a busy machine makes of anything.
// However a try ends, the code is compared in the same way, so that how long it takes tells nothing of
// it. What is written differs, and may: the answer itself says whether the try was counted.
func TestEveryTryIsTheSameWork(t *testing.T) {
	var done work
	b := newBench(t, "memory:"+t.Name())
	b.digest = func() hash.Hash {
		done.digests++
		return &countingHash{sha256.New(), &done}
	}
	contacts := []parley.ContactID{"6281100000001@c.us", "6281100000002@c.us", "6281100000003@c.us", "6281100000004@c.us",
		"6281100000005@c.us"}
	nobody, wrongly, late, locked, used := contacts[0], contacts[1], contacts[2], contacts[3], contacts[4]
	short := order(main, late)
	short.TTL = 30 * time.Second
	_, _, err := b.request(short)
	b.must(err)
	codes := map[parley.ContactID]string{wrongly: b.code(main, wrongly), locked: b.code(main, locked), used: b.code(main, used)}
	for range parley.MaxOTPTries {
		b.try(main, locked, wrong(codes[locked]))
	}
	b.advance(main, time.Minute)

	var want work
	for _, c := range []struct {
		name    string
		contact parley.ContactID
		code    string
		status  parley.OTPStatus
	}{
		{"wrong", wrongly, wrong(codes[wrongly]), parley.OTPStatusInvalid},
		{"right", used, codes[used], parley.OTPStatusApproved},
		{"used", used, codes[used], parley.OTPStatusInvalid},
		{"unknown", nobody, "000000", parley.OTPStatusInvalid},
		{"expired", late, "000000", parley.OTPStatusExpired},
		{"expired, as is known by now", late, "000000", parley.OTPStatusExpired},
		{"locked", locked, codes[locked], parley.OTPStatusLocked},
	} {
		done = work{}
		if got := b.try(main, c.contact, c.code).Status; got != c.status {
			t.Errorf("%s: %s, want %s", c.name, got, c.status)
		}
		if want == (work{}) {
			want = done
		}
		if done != want || done.digests == 0 || done.bytes == 0 {
			t.Errorf("%s: the work is %+v, want %+v", c.name, done, want)
		}
	}
}
