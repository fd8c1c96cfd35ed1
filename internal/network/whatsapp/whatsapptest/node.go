package whatsapptest

import (
	"encoding/binary"
	"fmt"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

type (
	node  = waBinary.Node
	attrs = waBinary.Attrs
)

// n makes a node. Content is children, bytes, or absent.
func n(tag string, a attrs, children ...node) node {
	if len(children) == 0 {
		return node{Tag: tag, Attrs: a}
	}
	return node{Tag: tag, Attrs: a, Content: children}
}

func leaf(tag string, content []byte) node { return node{Tag: tag, Content: content} }

// content returns the bytes of a leaf. A word of the dictionary arrives as a string.
func content(n node) []byte {
	switch c := n.Content.(type) {
	case []byte:
		return c
	case string:
		return []byte(c)
	default:
		return nil
	}
}

// str reads an attribute as it would look on the wire: stanzas between simulated devices never were there.
func str(n *node, key string) string {
	switch v := n.Attrs[key].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

func jid(n *node, key string) types.JID { return n.AttrGetter().OptionalJIDOrEmpty(key) }

func first(n *node) node {
	if c := n.GetChildren(); len(c) > 0 {
		return c[0]
	}
	return node{}
}

// shape describes a stanza without its content, for violations.
func shape(n *node) string {
	child := first(n)
	return fmt.Sprintf("<%s xmlns=%q type=%q class=%q><%s>", n.Tag, str(n, "xmlns"), str(n, "type"), str(n, "class"), child.Tag)
}

func unix() int64 { return time.Now().Unix() }

func be32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }

// be24 is how ids of prekeys are written.
func be24(v uint32) []byte { return be32(v)[1:] }

func from24(b []byte) uint32 {
	var v uint32
	for _, x := range b {
		v = v<<8 | uint32(x)
	}
	return v
}
