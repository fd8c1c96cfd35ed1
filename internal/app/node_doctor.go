package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"sync"
	"time"

	"parley"
	"parley/internal/cluster"
	"parley/internal/doctor"
	"parley/internal/encrypt"
	"parley/internal/store/sqldb"
)

// Where the data of a node is, for commands that work on files.
const (
	BackupOfNode = "The data of this node is in PostgreSQL. Back it up with pg_dump or the tools of your provider. " +
		"Store secret.key and the files in --media with it."
	RestoreOfNode = "The data of this node is in PostgreSQL. Stop all nodes, restore it into another database with pg_restore or the " +
		"tools of your provider, then run: parley restore --database NEW --before OLD"
	MigrateOfNode = "The data of this node is in PostgreSQL. A node migrates it when it starts."
)

var errBackupOfNode = parley.Errorf(parley.BadRequest, BackupOfNode)

// ShownDatabase is the address of a database without its password.
func ShownDatabase(address string) string { return sqldb.Redacted(address) }

// KeyFile is the file with the key that all nodes share.
func (c Config) KeyFile() string { return cmp.Or(c.SecretKeyFile, c.DataDir.Key()) }

// keyPrints are the fingerprints of the lines of a key file.
func keyPrints(keyring *encrypt.Keyring) [][]byte {
	prints := keyring.Derive("fingerprint of the key file")
	for i := range prints {
		prints[i] = prints[i][:16]
	}
	return prints
}

// examineNodes checks the database and the nodes on it; nothing if the database is a file.
func (s *server) examineNodes(ctx context.Context) []doctor.Finding {
	if s.node == nil {
		return nil
	}
	findings, nodes, err := s.cfg.inspect(ctx)
	if err != nil {
		return []doctor.Finding{doctor.Broken(err)}
	}
	writing, cancel := context.WithTimeout(ctx, writableFor)
	defer cancel()
	if err := s.data.Store.Writable(writing); err != nil {
		findings[0] = doctor.Unwritable(err)
	}
	id := s.node.ID()
	for i := range nodes {
		nodes[i].Self = nodes[i].ID == id
	}
	findings = append(findings, s.examineShared(ctx)...)
	return append(findings, doctor.Nodes(nodes, true)...)
}

// examineCluster checks the key file, the database and the nodes on it without a running node.
func (c Config) examineCluster(ctx context.Context) ([]doctor.Finding, error) {
	findings, nodes, err := c.inspect(ctx)
	if err != nil {
		return nil, err
	}
	return append(findings, doctor.Nodes(nodes, false)...), nil
}

// inspect checks the database and the key file, and tries the address of every node.
func (c Config) inspect(ctx context.Context) ([]doctor.Finding, []doctor.Node, error) {
	found, err := cluster.Inspect(ctx, c.Database)
	if err != nil {
		return nil, nil, c.explainDatabase(err)
	}
	findings := doctor.Postgres{Address: sqldb.Redacted(c.Database), Version: found.Version, Size: found.Size,
		Commit: found.Commit, Standbys: found.Standbys, Ahead: found.Ahead,
		Plain: found.Exposure.Plain, Unverified: found.Exposure.Unverified}.Look()
	if err := c.checkKeyFile(found.KeyPrint); err != nil {
		findings = append(findings, doctor.Finding{Check: "key", Level: doctor.Problem, Found: err.Error()})
		return findings, toDoctorNodes(found.Nodes), nil // none would answer
	}
	if len(found.Nodes) == 0 { // there may be no key yet, and opening it would make one
		return findings, nil, nil
	}
	keyring, err := encrypt.OpenKeyFile(c.KeyFile())
	if err != nil {
		return nil, nil, err
	}
	config, err := nodeTLS(keyring)
	return findings, reachNodes(ctx, config, found.Nodes), err
}

// explainDatabase says why the database cannot be used.
func (c Config) explainDatabase(err error) error {
	if _, explained := errors.AsType[*DataError](err); err == nil || explained {
		return err
	}
	return &DataError{fmt.Sprintf("The database %s cannot be used: %s", sqldb.Redacted(c.Database), sqldb.Explain(err))}
}

// checkKeyFile returns an error if the key file is not the one that the database was made with; stored may be nil.
func (c Config) checkKeyFile(stored []byte) error {
	path := c.KeyFile()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if stored == nil && c.SecretKeyFile == "" {
			return nil // the first node creates it
		}
		return &DataError{fmt.Sprintf("%s is missing. All nodes on one database share one key: copy secret.key from the data directory "+
			"of another node, or name it with --secret-key-file. Nothing was changed.", path)}
	}
	keyring, err := encrypt.OpenKeyFile(path)
	if err != nil {
		return err
	}
	if stored != nil && !cluster.HasKey(keyPrints(keyring), stored) {
		return &DataError{fmt.Sprintf("%s is not the key that this database was made with. Copy secret.key from the data directory "+
			"of another node. Nothing was changed.", path)}
	}
	return nil
}

// reachNodes tries the addresses of the nodes, all at the same time.
func reachNodes(ctx context.Context, config *tls.Config, found []cluster.Node) []doctor.Node {
	transport := probeTransport(config)
	nodes := toDoctorNodes(found)
	var trying sync.WaitGroup
	for i, n := range nodes {
		trying.Go(func() {
			id, err := doctor.ReachNode(ctx, transport, n.URL)
			nodes[i].Unreachable = err
			if id != n.ID {
				nodes[i].AnsweredBy = id
			}
		})
	}
	trying.Wait()
	return nodes
}

// probeTransport makes a connection for every request.
func probeTransport(config *tls.Config) http.RoundTripper {
	return &http.Transport{TLSClientConfig: config, TLSHandshakeTimeout: time.Second, DisableKeepAlives: true}
}

func toDoctorNodes(found []cluster.Node) []doctor.Node {
	nodes := make([]doctor.Node, len(found))
	for i, n := range found {
		nodes[i] = doctor.Node{ID: n.ID, URL: n.URL, Draining: n.Draining, Self: n.Self, Shards: n.Shards}
	}
	return nodes
}
