package api

import (
	"context"
	"strconv"

	"parley"
	"parley/internal/cluster"
	"parley/internal/wire"
)

func toNode(n cluster.Node) wire.Node {
	state := "serving"
	if n.Draining {
		state = "draining"
	}
	return wire.Node{
		ID: strconv.FormatInt(n.ID, 10), URL: n.URL, Version: n.Version, State: state, Self: n.Self, Shards: n.Shards,
		StartedAt: wire.At(n.StartedAt), RenewedAt: wire.At(n.RenewedAt()), ExpiresAt: wire.At(n.ExpiresAt),
	}
}

// isNode reports whether this server is a node of a cluster.
func (s *server) isNode() bool {
	_, single := s.config.Cluster.(cluster.Single)
	return !single
}

// listNodes returns an empty list if the database is a file.
func (s *server) listNodes(ctx context.Context, _ *request) (any, error) {
	nodes, err := s.config.Cluster.Nodes(ctx)
	return ok("OK", mapped(nodes, toNode)), err
}

var (
	errNoCluster = parley.Errorf(parley.BadRequest, "This server is not a node of a cluster: its database is a file.")
	errNoNode    = parley.Errorf(parley.NotFound, "This node does not exist. A node that stopped and started again has a new id.")
	errLastNode  = parley.Errorf(parley.BadRequest, "No other node serves channels, so this one cannot be drained. Start another node first.")
)

// drainNode makes a node hand its channels over. The last node that serves is not drained: every channel would stop.
func (s *server) drainNode(ctx context.Context, r *request) (any, error) {
	if !s.isNode() {
		return nil, errNoCluster
	}
	node, err := s.nodeToDrain(ctx, r.http.PathValue("id"))
	if err != nil {
		return nil, err
	}
	found, err := s.config.Cluster.Drain(ctx, node.ID)
	if err == nil && !found { // removed meanwhile
		err = errNoNode
	}
	node.Draining = true
	return ok("The node hands its channels over to other nodes.", toNode(node)), err
}

func (s *server) nodeToDrain(ctx context.Context, id string) (node cluster.Node, err error) {
	nodes, err := s.config.Cluster.Nodes(ctx)
	if err != nil {
		return node, err
	}
	exists, peers := false, 0
	for _, n := range nodes {
		switch {
		case strconv.FormatInt(n.ID, 10) == id:
			node, exists = n, true
		case !n.Draining:
			peers++
		}
	}
	switch {
	case !exists:
		return node, errNoNode
	case peers == 0 && !node.Draining:
		return node, errLastNode
	}
	return node, nil
}
