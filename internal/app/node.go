package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/internal/cluster"
	"parley/internal/doctor"
	"parley/internal/encrypt"
	"parley/internal/store"
	"parley/internal/store/sqldb"
	"parley/internal/token"
	"parley/internal/wait"
)

// defaultNodeListen is where other nodes on this machine reach this one.
const defaultNodeListen = "127.0.0.1:0"

// checkNode checks the settings of a node.
func (c Config) checkNode() error {
	if c.Database == "" {
		if c.NodeListen != "" || c.NodeURL != "" || c.NodeInsecure {
			return configErrorf("--node-listen, --node-url and --node-insecure are for several nodes on one PostgreSQL. " +
				"Give its address with --database, too.")
		}
		return nil
	}
	if !sqldb.IsPostgres(c.Database) {
		return configErrorf("--database must be the address of a PostgreSQL database, such as postgres://parley@db.example.com/parley. " +
			"Without it, the database is a file in the data directory.")
	}
	host, _, err := net.SplitHostPort(cmp.Or(c.NodeListen, defaultNodeListen))
	if err != nil {
		return configErrorf("--node-listen must be a host and a port, such as 10.0.0.11:7276.")
	}
	if ip := net.ParseIP(host); c.NodeURL == "" && (host == "" || ip != nil && ip.IsUnspecified()) {
		return configErrorf("Other nodes cannot use --node-listen %s as an address. Name one with --node-url, such as https://10.0.0.11:7276.",
			c.NodeListen)
	}
	u, err := url.Parse(c.NodeURL)
	if c.NodeURL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "") {
		return configErrorf("--node-url must be a scheme, a host and a port, such as https://10.0.0.11:7276.")
	}
	if u.Scheme == "http" && !c.NodeInsecure && !(doctor.IsLoopback(u.Hostname()) && doctor.IsLoopback(host)) {
		return configErrorf("Requests between nodes would cross the network in plain text. Begin --node-url with https: the nodes need no " +
			"certificate for it. Or pass --node-insecure if something else encrypts this network.")
	}
	if u.Scheme == "https" && c.NodeInsecure {
		return configErrorf("--node-insecure is for plain http between nodes, but --node-url begins with https. Remove one of them.")
	}
	return nil
}

// openNode opens the listener for other nodes.
func (s *server) openNode() (err error) {
	if s.cfg.Database == "" {
		return nil
	}
	if s.nodeListener, err = net.Listen("tcp", cmp.Or(s.cfg.NodeListen, defaultNodeListen)); err != nil {
		return fmt.Errorf("listen for other nodes: %w", err)
	}
	scheme := "https://"
	if s.cfg.NodeInsecure {
		scheme = "http://"
	}
	s.nodeURL = cmp.Or(strings.TrimSuffix(s.cfg.NodeURL, "/"), scheme+s.nodeListener.Addr().String())
	s.nodeListener = s.limitConnections(s.nodeListener)
	return nil
}

// nodeTLS is how nodes with a key file connect to each other.
func nodeTLS(keyring *encrypt.Keyring) (*tls.Config, error) {
	return cluster.TLS(keyring.Derive("TLS between nodes"))
}

// openDatabase opens the database: the file in the data directory, or PostgreSQL as a node of a cluster.
func (s *server) openDatabase(ctx context.Context) (err error) {
	if s.cfg.Database == "" {
		s.cluster = cluster.Single{}
		if err := s.cfg.DataDir.checkMoved(ctx); err != nil {
			return err
		}
		if _, err := s.cfg.DataDir.copyBefore(ctx, s.log); err != nil {
			return err
		}
		s.data, err = s.cfg.DataDir.openFor(ctx, s.log, s.cfg.Readers)
		return err
	}
	return s.cfg.explainDatabase(s.joinCluster(ctx))
}

func (s *server) joinCluster(ctx context.Context) error {
	stored, err := cluster.StoredKeyPrint(ctx, s.cfg.Database)
	if err != nil {
		return err
	}
	if err := s.cfg.checkKeyFile(stored); err != nil {
		return err
	}
	keyring, err := encrypt.OpenKeyFile(s.cfg.KeyFile())
	if err != nil {
		return err
	}
	if s.nodeTLS, err = nodeTLS(keyring); err != nil {
		return err
	}
	s.node = cluster.New(cluster.Config{
		Database: s.cfg.Database, URL: s.nodeURL, Version: s.cfg.Version, Keys: keyPrints(keyring), Log: s.log, Metrics: s.metrics,
		Joined:   func(int64) { wait.Notify(s.joined) },
		Acquired: s.channelsChanged,
		Changed:  s.noteChanges,
		Stop:     s.stopReleased,
		Fail:     s.fail,
	})
	s.cluster = s.node
	progress := store.WithProgress(ctx, func(text string) { s.log.Info(text) })
	db, err := store.OpenAs(progress, s.cfg.Database, s.node.Member(), s.cfg.Readers)
	if err != nil {
		return err
	}
	s.data = &Data{Dir: s.cfg.DataDir, Store: db, Keyring: keyring}
	if err := s.node.Join(ctx, db); err != nil {
		return err
	}
	e := s.node.Exposure()
	if f, exposed := (doctor.Postgres{Plain: e.Plain, Unverified: e.Unverified}).LookAtConnection(); exposed {
		s.log.Warn("the connection to the database "+f.Found, "remedy", f.Remedy)
	}
	s.data.Tokens, err = token.Open(ctx, db, keyring)
	return err
}

// member ties the writes of other databases to the membership; nil: there is no cluster.
func (s *server) member() *sqldb.Member {
	if s.node == nil {
		return nil
	}
	return s.node.Member()
}

// logJoin logs, each time this node became a member, what keeps nodes from working together.
func (s *server) logJoin(ctx context.Context) {
	for _, f := range append(s.examineAddresses(ctx), s.examineShared(ctx)...) {
		if ctx.Err() == nil {
			s.log.Error(f.Found, "remedy", f.Remedy)
		}
	}
}

// peerTries is how often something about other nodes is tried, once a second: they may be starting.
const peerTries = 5

// examineAddresses tries the addresses of all nodes.
func (s *server) examineAddresses(ctx context.Context) (findings []doctor.Finding) {
	for tries := range peerTries {
		if tries > 0 && !wait.Sleep(ctx, time.Second) {
			return nil
		}
		nodes, err := s.node.Nodes(ctx)
		if err != nil {
			return []doctor.Finding{doctor.Broken(err)}
		}
		if findings = doctor.Addresses(reachNodes(ctx, s.nodeTLS, nodes)); len(findings) == 0 {
			return nil
		}
	}
	return findings
}

// examineShared checks that the files of all nodes are in the same place.
func (s *server) examineShared(ctx context.Context) []doctor.Finding {
	var apart []string
	for tries := range peerTries {
		if tries > 0 && !wait.Sleep(ctx, time.Second) || s.node.ID() == 0 {
			return nil
		}
		nodes, err := s.node.Nodes(ctx)
		if err != nil {
			return []doctor.Finding{doctor.Broken(err)}
		}
		var others []string
		for _, n := range nodes {
			if !n.Self {
				others = append(others, strconv.FormatInt(n.ID, 10))
			}
		}
		checking, cancel := context.WithTimeout(ctx, mediaCheckTime)
		apart, err = s.media.CheckShared(checking, strconv.FormatInt(s.node.ID(), 10), others)
		cancel()
		if err != nil {
			return []doctor.Finding{{Check: "media", Level: doctor.Problem, Found: "the files of other nodes cannot be checked: " + err.Error()}}
		}
		if len(apart) == 0 {
			return nil
		}
	}
	return []doctor.Finding{doctor.NotShared(apart)}
}

// pendingChanges are changes that were noted and not read.
type pendingChanges struct {
	mu  sync.Mutex
	all cluster.Changes
}

func (p *pendingChanges) add(c cluster.Changes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all.Add(c)
}

func (p *pendingChanges) take() (all cluster.Changes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, p.all = p.all, all
	return all
}

// noteChanges notes what nodes changed, for readChanges. Revoked tokens are refused at once: nothing else may delay that.
func (s *server) noteChanges(c cluster.Changes) {
	if !s.partsOpen.Load() {
		return // the parts read everything when they start
	}
	s.data.Tokens.Evict(func(t parley.Token) bool {
		return c.All || c.Keys || slices.Contains(c.Tokens, t.ID) || t.Channel != "" && slices.Contains(c.Channels, t.Channel)
	})
	s.changes.add(c)
	wait.Notify(s.changed)
}

// readChanges reads what nodes changed.
func (s *server) readChanges(ctx context.Context) {
	c := s.changes.take()
	codes := c.Channels
	for _, code := range c.Statuses { // those of this node are in memory
		if code != "" && !s.cluster.Owns(string(code)) {
			codes = append(codes, code)
		}
	}
	var err error
	if c.All || c.Keys {
		err = s.data.Tokens.Refresh(ctx)
	}
	if !c.All && len(c.Webhooks) > 0 {
		s.callback.Reload(c.Webhooks...)
	}
	if c.All {
		s.callback.Reload()
		err = errors.Join(err, s.gateway.Refresh(context.WithoutCancel(ctx)))
	} else if len(codes) > 0 {
		err = errors.Join(err, s.gateway.Refresh(context.WithoutCancel(ctx), codes...))
	}
	if err != nil && ctx.Err() == nil {
		s.log.Error("read what other nodes changed", "error", err)
		s.changes.add(c)
		time.AfterFunc(time.Second, func() { wait.Notify(s.changed) })
	}
}

// channelsChanged makes the parts match the database and the shards of this node.
func (s *server) channelsChanged(ctx context.Context) error {
	if !s.partsOpen.Load() {
		return nil
	}
	s.callback.Reload()
	return s.gateway.Refresh(context.WithoutCancel(ctx))
}

// stopReleased stops everything of shards that this node no longer owns.
func (s *server) stopReleased(ctx context.Context) error {
	if !s.partsOpen.Load() {
		return nil
	}
	s.callback.Reload()
	if err := s.gateway.Release(ctx); err != nil {
		return err
	}
	return s.sandbox.Drop(ctx, func(code parley.ChannelCode) bool { return s.cluster.Owns(string(code)) })
}

// handOver gives the channels to other nodes before this one stops. Requests are served meanwhile.
func (s *server) handOver() {
	if s.node == nil || !s.node.HasPeers() {
		return
	}
	s.state.Store(draining)
	ctx, cancel := context.WithTimeout(context.Background(), s.limits.requests/2)
	defer cancel()
	if err := s.node.ReleaseAll(ctx); err != nil {
		s.log.Warn("some channels could not be handed over; other nodes take them over later", "error", err)
	}
}

// checkNodeReady returns nil if this node can serve requests.
func (s *server) checkNodeReady() error {
	if s.node == nil {
		return nil
	}
	switch offset := s.node.ClockOffset().Abs(); {
	case s.node.Draining():
		return parley.Errorf(parley.Unavailable, "The node is drained.")
	case s.node.Remaining() < 2*time.Second:
		return parley.Errorf(parley.Unavailable, "The node could not renew its membership of the cluster.")
	case !s.node.Serves():
		return parley.Errorf(parley.Unavailable, "The node serves no channels yet.")
	case offset > doctor.MaxNodeClock:
		return parley.Errorf(parley.Unavailable, "The clock of this machine is %s off from the database's.", offset.Round(time.Second))
	}
	return nil
}

// startNode serves the requests of other nodes, until the listener is closed, and acquires shards. It refuses if another node has
// the address of this one: requests would go to the wrong node.
func (s *server) startNode(ctx context.Context) error {
	if s.node == nil {
		return nil
	}
	l := s.nodeListener
	if strings.HasPrefix(s.nodeURL, "https:") {
		l = tls.NewListener(l, s.nodeTLS)
	}
	go func() { s.nodesServed <- s.nodeHTTP.Serve(l) }()
	err := s.checkOwnAddress(ctx)
	if err == nil {
		err = s.node.Start(ctx)
	}
	if taken, ok := errors.AsType[*cluster.AddressTaken](err); ok {
		return &DataError{fmt.Sprintf("Node %d has the address %s, too, so other nodes could not tell this one from it. "+
			"Give each node a --node-listen and --node-url of its own.", taken.By, s.nodeURL)}
	}
	if err != nil {
		return fmt.Errorf("acquire shards: %w", err)
	}
	return nil
}

// ownTries is how often a node asks at its own address, on a connection of its own: behind a load balancer several nodes answer.
const ownTries = 3

// checkOwnAddress returns an [cluster.AddressTaken] if another node answers at the address of this one. It asks for some seconds,
// because a name may still lead to where this node was before. Without an answer, logJoin reports it.
func (s *server) checkOwnAddress(ctx context.Context) (err error) {
	transport := probeTransport(s.nodeTLS)
	for tries := range peerTries {
		if tries > 0 && !wait.Sleep(ctx, time.Second) {
			return ctx.Err()
		}
		err = nil
		for range ownTries {
			id, unreached := doctor.ReachNode(ctx, transport, s.nodeURL)
			if unreached != nil {
				break
			}
			if id != 0 && id != s.node.ID() {
				err = &cluster.AddressTaken{By: id}
			}
		}
		if err == nil {
			return nil
		}
	}
	return err
}

// awaitNodes returns why serving other nodes ended.
func (s *server) awaitNodes(context.Context) error {
	if s.node == nil {
		return nil
	}
	return <-s.nodesServed
}

// awaitFailure returns the error with which the node must end.
func (s *server) awaitFailure(ctx context.Context) error {
	select {
	case err := <-s.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}
