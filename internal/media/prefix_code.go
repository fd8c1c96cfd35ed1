package media

import (
	"container/heap"
	"math/bits"
	"slices"
)

// Longest codes that the format accepts: of a picture's symbols, and of the lengths of their codes.
const (
	maxCodeLength       = 15
	maxLengthCodeLength = 7
)

// prefixCode is a canonical prefix code.
type prefixCode struct {
	lengths []int    // of each symbol's code; zero: it does not occur
	codes   []uint32 // in the order of bits in the file
	symbols []int    // those that occur. The code of a single one takes no bits.
}

// newPrefixCode makes a code for symbols that occur so often, with codes no longer than a limit. Where they would be, rare
// symbols count as more frequent than they are.
func newPrefixCode(counts []int, limit int) prefixCode {
	p := prefixCode{lengths: make([]int, len(counts)), codes: make([]uint32, len(counts))}
	for symbol, n := range counts {
		if n > 0 {
			p.symbols = append(p.symbols, symbol)
		}
	}
	if len(p.symbols) == 1 {
		p.lengths[p.symbols[0]] = 1
		return p
	}
	for least := 1; len(p.symbols) > 0; least *= 2 {
		if p.measure(counts, least) <= limit {
			break
		}
	}
	p.number()
	return p
}

// measure sets the lengths of a Huffman code and returns the longest.
func (p *prefixCode) measure(counts []int, least int) (longest int) {
	nodes := make(nodeHeap, 0, len(p.symbols))
	for _, symbol := range p.symbols {
		nodes = append(nodes, &node{weight: max(counts[symbol], least), symbol: symbol})
	}
	heap.Init(&nodes)
	for len(nodes) > 1 {
		a, b := heap.Pop(&nodes).(*node), heap.Pop(&nodes).(*node)
		heap.Push(&nodes, &node{weight: a.weight + b.weight, children: []*node{a, b}})
	}
	var walk func(n *node, depth int)
	walk = func(n *node, depth int) {
		if n.children == nil {
			p.lengths[n.symbol] = depth
			longest = max(longest, depth)
		}
		for _, child := range n.children {
			walk(child, depth+1)
		}
	}
	walk(nodes[0], 0)
	return longest
}

// number gives out codes by length, then by symbol.
func (p *prefixCode) number() {
	sorted := slices.Clone(p.symbols)
	slices.SortStableFunc(sorted, func(a, b int) int { return p.lengths[a] - p.lengths[b] })
	code, length := uint32(0), 0
	for _, symbol := range sorted {
		code <<= p.lengths[symbol] - length
		length = p.lengths[symbol]
		p.codes[symbol] = bits.Reverse32(code) >> (32 - length)
		code++
	}
}

type node struct {
	weight, symbol int
	children       []*node
}

type nodeHeap []*node

func (h nodeHeap) Len() int           { return len(h) }
func (h nodeHeap) Less(i, j int) bool { return h[i].weight < h[j].weight }
func (h nodeHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *nodeHeap) Push(n any)        { *h = append(*h, n.(*node)) }
func (h *nodeHeap) Pop() any {
	n := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return n
}

func (w *bitWriter) writeSymbol(p prefixCode, symbol int) {
	if len(p.symbols) > 1 {
		w.write(p.codes[symbol], p.lengths[symbol])
	}
}

// writeCode writes a code by the lengths of its symbols' codes. None or a single byte has a short form.
func (w *bitWriter) writeCode(p prefixCode) {
	switch {
	case len(p.symbols) == 0:
		w.write(0b0001, 4) // the single symbol 0, in one bit
	case len(p.symbols) == 1 && p.symbols[0] < 256:
		w.write(0b101, 3) // a single symbol, in eight bits
		w.write(uint32(p.symbols[0]), 8)
	default:
		w.writeLengths(p)
	}
}

// lengthOrder is the order in which the format writes the lengths of the codes of lengths.
var lengthOrder = []int{zeros3, zeros11, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// Codes for several zeros.
const (
	zeros3     = 17 // 3 to 10
	zeros11    = 18 // 11 to 138
	maxZeros3  = 10
	maxZeros11 = 138
)

type lengthSymbol struct{ symbol, extra, bits int }

func (w *bitWriter) writeLengths(p prefixCode) {
	lengths := shortened(p.lengths)
	counts := make([]int, len(lengthOrder))
	for _, l := range lengths {
		counts[l.symbol]++
	}
	code := newPrefixCode(counts, maxLengthCodeLength)
	const leastWritten = 4
	n := len(lengthOrder)
	for n > leastWritten && code.lengths[lengthOrder[n-1]] == 0 {
		n--
	}
	w.write(0, 1) // not the short form
	w.write(uint32(n-leastWritten), 4)
	for _, symbol := range lengthOrder[:n] {
		w.write(uint32(code.lengths[symbol]), 3)
	}
	w.write(0, 1) // all lengths follow
	for _, l := range lengths {
		w.writeSymbol(code, l.symbol)
		w.write(uint32(l.extra), l.bits)
	}
}

// shortened replaces zeros in a row.
func shortened(lengths []int) (all []lengthSymbol) {
	for i := 0; i < len(lengths); {
		n := 0
		for i+n < len(lengths) && lengths[i+n] == 0 && n < maxZeros11 {
			n++
		}
		switch {
		case n > maxZeros3:
			all = append(all, lengthSymbol{zeros11, n - maxZeros3 - 1, 7})
		case n >= 3:
			all = append(all, lengthSymbol{zeros3, n - 3, 3})
		default:
			n = 1
			all = append(all, lengthSymbol{symbol: lengths[i]})
		}
		i += n
	}
	return all
}
