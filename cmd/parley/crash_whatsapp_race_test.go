//go:build race

package main

// The race detector makes everything some eight times slower, so that less is done by default.
const (
	whatsappKills    = 6
	whatsappMessages = 600
	whatsappInbound  = 240
)
