package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/token"
)

// DemoChannel is the channel that a development server creates.
const DemoChannel = "demo"

// prepareDev creates the demo channel and writes dev.env. Tokens that are still valid stay, so programs that have them
// continue to work here. They are marked, so that a production server on the same directory does not accept them.
func prepareDev(ctx context.Context, data *Data, url string) error {
	data.Tokens.AcceptDev()
	if err := ensureDemo(ctx, data.Store); err != nil {
		return err
	}
	env, err := ReadDevEnv(data.Dir)
	if err != nil {
		return err
	}
	env[EnvURL] = url
	for name, want := range map[string]parley.Token{
		EnvToken:       {Name: "dev", Dev: true, Kind: parley.ChannelToken, Channel: DemoChannel},
		EnvGlobalToken: {Name: "dev", Dev: true, Kind: parley.GlobalToken},
		EnvAdminToken:  {Name: "dev", Dev: true, Kind: parley.AdminToken},
	} {
		has, err := data.Tokens.Verify(ctx, env[name])
		if err == nil && has.Kind == want.Kind && has.Channel == want.Channel {
			if err := markDev(ctx, data.Tokens, has); err != nil {
				return err
			}
			continue
		}
		if err != nil && !parley.IsUnauthenticated(err) {
			return err
		}
		if env[name], err = data.Tokens.Issue(ctx, want); err != nil {
			return err
		}
	}
	return WritePrivate(data.Dir.DevEnv(), []byte(strings.Join(env.Lines(), "\n")+"\n"))
}

// markDev marks a token that is in dev.env but was made otherwise.
func markDev(ctx context.Context, tokens *token.Authority, t parley.Token) error {
	if t.Dev {
		return nil
	}
	_, err := tokens.Update(ctx, t.ID, func(t *parley.Token) { t.Dev = true },
		func(*store.Tx, parley.Token, parley.Token) error { return nil })
	return err
}

func ensureDemo(ctx context.Context, db *store.DB) error {
	_, err := db.Channel(ctx, DemoChannel)
	if !errors.Is(err, parley.ErrNotFound) {
		return err
	}
	return AddChannel(ctx, db, parley.Channel{Code: DemoChannel, Name: "Demo", Network: parley.Sandbox})
}

// AddChannel stores a new enabled channel. A gateway starts it when it reads the store.
func AddChannel(ctx context.Context, db *store.DB, c parley.Channel) error {
	c.Begin(time.Now())
	err := db.Tx(ctx, func(tx *store.Tx) error { return tx.AddChannel(ctx, c) })
	if errors.Is(err, parley.ErrExists) {
		return parley.Errorf(parley.Invalid, "Channel %s already exists.", c.Code)
	}
	return err
}

// The names in dev.env.
const (
	EnvURL         = "PARLEY_URL"
	EnvToken       = "PARLEY_TOKEN"
	EnvGlobalToken = "PARLEY_GLOBAL_TOKEN"
	EnvAdminToken  = "PARLEY_ADMIN_TOKEN"
)

var envNames = []string{EnvURL, EnvToken, EnvGlobalToken, EnvAdminToken}

// DevEnv is the content of dev.env: NAME=value lines for a shell.
type DevEnv map[string]string

// ReadDevEnv reads dev.env in a data directory. A missing file is empty.
func ReadDevEnv(dir Dir) (DevEnv, error) {
	env := DevEnv{}
	data, err := os.ReadFile(dir.DevEnv())
	if errors.Is(err, fs.ErrNotExist) {
		return env, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir.DevEnv(), err)
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			env[name] = value
		}
	}
	return env, nil
}

// Lines returns the known values, each as NAME=value.
func (e DevEnv) Lines() []string {
	var lines []string
	for _, name := range envNames {
		if e[name] != "" {
			lines = append(lines, name+"="+e[name])
		}
	}
	return lines
}

// WritePrivate writes a file that only its owner can read, whole or not at all.
func WritePrivate(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".parley-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // after the rename there is nothing to remove
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
