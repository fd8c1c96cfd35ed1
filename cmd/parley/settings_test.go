package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"parley/internal/app"
)

// TestSettingsOrder sets one setting everywhere and removes the values one by one.
func TestSettingsOrder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	write(t, file, "from-file:1\n")
	write(t, filepath.Join(dir, "parley.toml"), `listen = "from-toml:1"`)
	env := map[string]string{"PARLEY_DATA": dir, "PARLEY_LISTEN": "from-env:1", "PARLEY_LISTEN_FILE": file}
	args := []string{"--listen", "from-flag:1"}

	expect := func(text, origin string) {
		t.Helper()
		s := load(t, args, env)
		if got := s.values[keyListen]; got.text != text || !strings.HasSuffix(got.origin, origin) {
			t.Errorf("listen is %q from %q, want %q from %q", got.text, got.origin, text, origin)
		}
	}
	expect("from-flag:1", "--listen")
	args = nil
	expect("from-env:1", "PARLEY_LISTEN")
	delete(env, "PARLEY_LISTEN")
	expect("from-file:1", "PARLEY_LISTEN_FILE")
	delete(env, "PARLEY_LISTEN_FILE")
	expect("from-toml:1", "parley.toml")
	os.Remove(filepath.Join(dir, "parley.toml"))
	expect("127.0.0.1:7275", "default")
}

func TestSettingsKinds(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "parley.toml"), "behind_proxy = true\nallow_private = [\"10.0.0.0/8\", \"192.168.1.7\"]\n")
	s := load(t, nil, map[string]string{"PARLEY_DATA": dir})
	if !s.on(keyBehindProxy) {
		t.Error("behind_proxy is off")
	}
	ranges, err := s.prefixes(keyAllowPrivate)
	if err != nil || len(ranges) != 2 || ranges[0].String() != "10.0.0.0/8" || ranges[1].String() != "192.168.1.7/32" {
		t.Errorf("allow_private is %v (%v)", ranges, err)
	}
}

func TestSettingsReject(t *testing.T) {
	for _, c := range []struct{ toml, want string }{
		{`listn = "x"`, `Did you mean "listen"?`},
		{`listen = 7275`, "listen must be a text"},
		{`behind_proxy = "yes"`, "behind_proxy must be true or false"},
		{`allow_private = [1]`, "allow_private must be a list of texts"},
		{`listen = `, "parley.toml"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "parley.toml"), c.toml)
		_, err := loadSettings(flags(t, nil), lookup(map[string]string{"PARLEY_DATA": dir}))
		if err == nil || !strings.Contains(err.Error(), c.want) || toExitCode(err) != exitUsage {
			t.Errorf("%s: %v (exit %d), want exit 2 and %q", c.toml, err, toExitCode(err), c.want)
		}
	}
	if _, err := loadSettings(flags(t, nil), lookup(map[string]string{"PARLEY_CONFIG": "/nowhere.toml"})); toExitCode(err) != exitUsage {
		t.Errorf("a file that was asked for and is not there: %v", err)
	}
	if _, err := loadSettings(flags(t, nil), lookup(map[string]string{"PARLEY_BEHIND_PROXY": "perhaps"})); toExitCode(err) != exitUsage {
		t.Errorf("behind_proxy=perhaps: %v", err)
	}
}

func load(t *testing.T, args []string, env map[string]string) *settings {
	t.Helper()
	s, err := loadSettings(flags(t, args), lookup(env))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func flags(t *testing.T, args []string) *pflag.FlagSet {
	t.Helper()
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	settingFlags(f, settingKeys()...)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSettingsLimits reads limits, and what they mean where they are zero.
func TestSettingsLimits(t *testing.T) {
	config := func(env map[string]string) (app.Config, error) {
		env["PARLEY_DATA"] = t.TempDir()
		c := &cli{err: io.Discard, set: load(t, nil, env)}
		return c.appConfig()
	}
	byDefault, err := config(map[string]string{})
	if err != nil || byDefault.MediaPerMinute != 0 || byDefault.OTPContacts != 0 || byDefault.OTPPrefix != 0 ||
		byDefault.RequestsPerSecond != 0 {
		t.Errorf("by default: %+v, %v", byDefault, err)
	}
	set, err := config(map[string]string{"PARLEY_MEDIA_MIB_PER_MINUTE": "0", "PARLEY_OTP_CONTACTS_PER_HOUR": "300",
		"PARLEY_OTP_PREFIX_PER_HOUR": "20"})
	if err != nil || set.MediaPerMinute >= 0 || set.OTPContacts != 300 || set.OTPPrefix != 20 {
		t.Errorf("set: %+v, %v", set, err)
	}
	if set, err = config(map[string]string{"PARLEY_OTP_CONTACTS_PER_HOUR": "0"}); err != nil || set.OTPContacts >= 0 || set.OTPPrefix != 0 {
		t.Errorf("unlimited: %+v, %v", set, err)
	}
	for _, bad := range []string{"-1", "1.5", "many", "99999999999"} {
		if _, err := config(map[string]string{"PARLEY_OTP_PREFIX_PER_HOUR": bad}); err == nil || toExitCode(err) != exitUsage {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
