package cluster

import (
	"context"
	"time"

	"parley/internal/wait"
)

const (
	// notifyPause is the minimum time between two notifications. In commits they would cost most of the rate.
	notifyPause = 20 * time.Millisecond
	// listenPause is the pause after LISTEN failed. Until then the beats find what is new.
	listenPause = time.Second
	// pollEvery is how often the database is read without a notification.
	pollEvery = time.Second
)

// notify tells other nodes what this one changed, until ctx ends. It has a connection of its own.
func (c *Cluster) notify(ctx context.Context) {
	for {
		var what string
		select {
		case <-ctx.Done():
			return
		case <-c.events:
			what = "e"
		case <-c.changes:
			what = "c"
		case <-c.announce:
			what = "s"
		}
		began := time.Now()
		c.sendNotify(ctx, what)
		c.metrics.notifySeconds.Observe(time.Since(began).Seconds())
		wait.Sleep(ctx, notifyPause)
	}
}

// sendNotify sends one notification. If it fails, the other nodes find the change with their next beat.
func (c *Cluster) sendNotify(ctx context.Context, what string) {
	if c.notifier == nil || c.notifier.IsClosed() {
		conn, err := c.dial(ctx)
		if err != nil {
			return
		}
		c.notifier = conn
		c.ownPID.Store(conn.PgConn().PID())
	}
	c.call(ctx, c.notifier, func(ctx context.Context) error {
		_, err := c.notifier.Exec(ctx, `SELECT pg_notify($1, $2)`, c.channel, what)
		return err
	})
}

// listen reads the database when other nodes changed something, until ctx ends.
func (c *Cluster) listen(ctx context.Context) {
	for ctx.Err() == nil {
		c.listenOnce(ctx)
		wait.Sleep(ctx, listenPause)
	}
}

func (c *Cluster) listenOnce(ctx context.Context) {
	conn, err := c.dial(ctx)
	if err != nil {
		return
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(ctx, `LISTEN "`+c.channel+`"`); err != nil {
		return
	}
	next := time.Now() // when to read although nobody said that something changed; events, which may come all the time, do not count
	for {
		waiting, cancel := context.WithDeadline(ctx, next)
		n, err := conn.WaitForNotification(waiting)
		polled := waiting.Err() != nil && ctx.Err() == nil
		cancel()
		if err != nil && !polled {
			return
		}
		switch {
		case n != nil && n.PID == c.ownPID.Load():
		case n != nil && n.Payload == "e":
			c.store.NotifyEvents()
		default:
			if err := c.read(ctx, conn); err != nil {
				return
			}
			next = time.Now().Add(pollEvery)
			wait.Notify(c.balance)
		}
	}
}
