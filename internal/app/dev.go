package app

import (
	"context"
	"errors"
	"time"

	"parley"
	"parley/internal/store"
)

// DemoChannel is the channel that a development server makes.
const DemoChannel = "demo"

// prepareDev makes the demo channel and writes dev.env. On data that was used before, what still
// works is kept: programs that hold the tokens go on working.
func prepareDev(ctx context.Context, data *Data, url string) error {
	if err := ensureDemo(ctx, data.Store); err != nil {
		return err
	}
	env, err := ReadDevEnv(data.Dir)
	if err != nil {
		return err
	}
	env[EnvURL] = url
	for name, want := range map[string]parley.Token{
		EnvToken:       {Name: "dev", Kind: parley.ChannelToken, Channel: DemoChannel},
		EnvGlobalToken: {Name: "dev", Kind: parley.GlobalToken},
		EnvAdminToken:  {Name: "dev", Kind: parley.AdminToken},
	} {
		has, err := data.Tokens.Verify(ctx, env[name])
		if err == nil && has.Kind == want.Kind && has.Channel == want.Channel {
			continue
		}
		if err != nil && parley.CodeOf(err) != parley.Unauthenticated {
			return err
		}
		if env[name], err = data.Tokens.Issue(ctx, want); err != nil {
			return err
		}
	}
	return env.write(data.Dir)
}

func ensureDemo(ctx context.Context, db *store.DB) error {
	_, err := db.Channel(ctx, DemoChannel)
	if !errors.Is(err, parley.ErrNotFound) {
		return err
	}
	return AddChannel(ctx, db, parley.Channel{Code: DemoChannel, Name: "Demo", Network: parley.Sandbox})
}

// AddChannel stores a new channel that is to run. A gateway starts it when it reads the store.
func AddChannel(ctx context.Context, db *store.DB, c parley.Channel) error {
	c.Begin(time.Now())
	err := db.Tx(ctx, func(tx *store.Tx) error { return tx.AddChannel(ctx, c) })
	if errors.Is(err, parley.ErrExists) {
		return parley.Errorf(parley.Invalid, "There is a channel %s already.", c.Code)
	}
	return err
}
