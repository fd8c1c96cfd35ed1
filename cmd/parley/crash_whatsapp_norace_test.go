//go:build !race

package main

// How much the loops do by default.
const (
	whatsappKills    = 25
	whatsappMessages = 5000
	whatsappInbound  = 1000
)
