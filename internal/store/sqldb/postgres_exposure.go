package sqldb

import (
	"crypto/tls"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Exposure is what others on the network could do with connections to PostgreSQL on another machine. On this machine: nothing.
type Exposure struct {
	Plain      bool // read and change them: they are not encrypted, or would not be if somebody on the way said so
	Unverified bool // answer in place of the server: nobody checks its certificate
}

// NewExposure judges a connection, and what its address allows for the next one.
func NewExposure(conn *pgx.Conn) Exposure {
	own := conn.PgConn().Conn()
	_, encrypted := own.(*tls.Conn)
	return exposure(own.RemoteAddr(), encrypted, &conn.Config().Config)
}

func exposure(server net.Addr, encrypted bool, c *pgconn.Config) (e Exposure) {
	if at, ok := server.(*net.TCPAddr); !ok || at.IP.IsLoopback() {
		return Exposure{}
	}
	e.Plain = !encrypted
	configs := []*tls.Config{c.TLSConfig}
	for _, f := range c.Fallbacks {
		configs = append(configs, f.TLSConfig)
	}
	for _, t := range configs {
		e.Plain = e.Plain || t == nil
		e.Unverified = e.Unverified || t == nil || t.InsecureSkipVerify && t.VerifyPeerCertificate == nil
	}
	return e
}
