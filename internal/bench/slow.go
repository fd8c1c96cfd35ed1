package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const slowConnections = 500

// measureSlow measures sends beside hundreds of connections that never finish what they began.
func measureSlow(ctx context.Context, o options, t *table) error {
	data, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	gateway, err := startParley(ctx, o, data)
	if err != nil {
		return err
	}
	defer gateway.stop()
	o.connections = 2
	sends := requests(o, "/api/send-message/text", gateway.token, func(i int) string { return fmt.Sprintf("62812000%05d", i) })
	alone, _, err := slice(gateway, sends, 2*o.slice)
	if err != nil {
		return err
	}
	closeAll, err := holdSlow(gateway.addr)
	if err != nil {
		return err
	}
	defer closeAll()
	beside, _, err := slice(gateway, sends, 2*o.slice)
	if err != nil {
		return err
	}
	p99 := quantile(beside.latencies, 0.99)
	t.add(fmt.Sprintf("sends beside %d slow connections, p99", slowConnections),
		fmt.Sprintf("%.1f ms (%.1f ms alone)", ms(p99), ms(quantile(alone.latencies, 0.99))), "< 1 s", p99 < time.Second)
	return nil
}

// holdSlow opens connections that stop in the middle of a header, of a body, or of reading a long answer.
func holdSlow(addr string) (closeAll func(), err error) {
	const begin = "POST /api/send-message/text HTTP/1.1\r\nHost: x\r\n"
	beginnings := []string{begin + "X-Slow: ", begin + "Content-Length: 1000000\r\n\r\n{", "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"}
	var conns []net.Conn
	closeAll = func() {
		for _, c := range conns {
			c.Close()
		}
	}
	var mu sync.Mutex
	var opening sync.WaitGroup
	for i := range slowConnections {
		opening.Go(func() {
			c, dialErr := net.Dial("tcp", addr)
			if dialErr == nil {
				_, dialErr = io.WriteString(c, beginnings[i%len(beginnings)])
			}
			mu.Lock()
			defer mu.Unlock()
			if c != nil {
				conns = append(conns, c)
			}
			if err == nil {
				err = dialErr
			}
		})
	}
	opening.Wait()
	if err != nil {
		closeAll()
	}
	return closeAll, err
}
