package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
	"time"

	"parley/internal/postgrestest"
)

// addedRoundTrip is what the delaying proxy adds to a round trip to the database: about the way to another zone.
const addedRoundTrip = 500 * time.Microsecond

// startDelay starts a delaying proxy and returns the address of a database through it. The proxy itself takes time too, so
// it delays less than addedRoundTrip: by so much that a round trip on the idle machine takes that much longer.
func startDelay(ctx context.Context, server *postgrestest.Server) (*process, string, error) {
	near, err := postgrestest.RoundTrip(server.Address())
	if err != nil {
		return nil, "", err
	}
	for added, tries := addedRoundTrip, 1; ; tries++ {
		proxy, err := startRole(ctx, "delay", server.Host(), added.String())
		if err != nil {
			return nil, "", err
		}
		address := strings.Replace(server.Address(), server.Host(), proxy.addr, 1)
		far, err := postgrestest.RoundTrip(address)
		if err != nil {
			proxy.stop()
			return nil, "", err
		}
		excess := far - near - addedRoundTrip
		if excess.Abs() < addedRoundTrip/20 || tries == 4 {
			return proxy, address, nil
		}
		proxy.stop()
		added = max(0, added-excess)
	}
}

// serveDelay is the process of a proxy that delays what passes it. Parts pass in order and at the same time: a long answer is
// not slower than a short one.
func serveDelay(target, added string) error {
	roundTrip, err := time.ParseDuration(added)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	for {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		to, err := net.Dial("tcp", target)
		if err != nil {
			conn.Close()
			continue
		}
		go delay(conn, to, roundTrip/2)
		go delay(to, conn, roundTrip/2)
	}
}

type part struct {
	bytes []byte
	due   time.Time
}

// delay copies until one side ends, then closes both.
func delay(to, from net.Conn, by time.Duration) {
	defer to.Close()
	parts, free := make(chan part, 1024), make(chan []byte, 16)
	go func() {
		defer close(parts)
		for {
			var buffer []byte
			select {
			case buffer = <-free:
			default:
				buffer = make([]byte, 64<<10)
			}
			n, err := from.Read(buffer)
			if n > 0 {
				parts <- part{buffer[:n], time.Now().Add(by)}
			}
			if err != nil {
				return
			}
		}
	}()
	// A sleeping thread of Linux wakes up to 50 us late unless it says otherwise.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	syscall.Syscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, 1, 0)
	var failed error
	for p := range parts { // to the end, so that the reader ends
		if wait := time.Until(p.due); wait > 0 && failed == nil {
			failed = sleepExactly(wait)
		}
		if failed == nil {
			if _, failed = to.Write(p.bytes); failed != nil {
				from.Close()
			}
		}
		select {
		case free <- p.bytes[:cap(p.bytes)]:
		default:
		}
	}
}

// sleepExactly blocks the thread: the timers of an idle Go program are exact to a millisecond only.
func sleepExactly(d time.Duration) error {
	left := syscall.NsecToTimespec(d.Nanoseconds())
	for {
		err := syscall.Nanosleep(&left, &left)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
