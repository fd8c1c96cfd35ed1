package sqldb

import (
	"net"
	"testing"

	"parley/internal/postgrestest"
)

func TestExposureToTheNetwork(t *testing.T) {
	far, here := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 5)}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	plain, unverified, none := Exposure{Plain: true, Unverified: true}, Exposure{Unverified: true}, Exposure{}
	for _, c := range []struct {
		server    net.Addr
		mode      string
		encrypted bool
		want      Exposure
	}{
		{far, "disable", false, plain},
		{far, "allow", false, plain},
		{far, "allow", true, plain},
		{far, "prefer", false, plain},
		{far, "prefer", true, plain}, // the next one may be plain
		{far, "require", true, unverified},
		{far, "verify-ca", true, none},
		{far, "verify-full", true, none},
		{here, "disable", false, none},
		{&net.UnixAddr{Name: "/run/postgresql"}, "disable", false, none},
	} {
		config, err := postgresConfig(Options{Path: "postgres://parley@db.example.com/parley?sslmode=" + c.mode, Readers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := exposure(c.server, c.encrypted, &config.ConnConfig.Config); got != c.want {
			t.Errorf("%s at %s, encrypted %t: %+v, want %+v", c.mode, c.server, c.encrypted, got, c.want)
		}
	}
}

func TestPostgresOnThisMachineIsNotExposed(t *testing.T) {
	conn, err := ConnectPostgres(t.Context(), postgrestest.Start(t).Schema(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if got := NewExposure(conn); got != (Exposure{}) {
		t.Errorf("%+v", got)
	}
}
