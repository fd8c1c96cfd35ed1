package parley

import "time"

// RequestsPerChannel is how many of the latest requests of a channel the request log has at least.
const RequestsPerChannel = 1000

// LoggedRequest is one request to the API for a channel. It has no body, no query string and no token.
type LoggedRequest struct {
	Seq            int64 // in the order of the responses; unique in its channel
	Channel        ChannelCode
	At             time.Time // when it arrived
	Method         string
	Path           string
	Status         int
	Code           string // of the error; empty: none
	Took           time.Duration
	Request        string // its id
	IdempotencyKey string // empty: none
	Token          TokenID
}

// RequestQuery selects requests of a channel. Empty fields select all.
type RequestQuery struct {
	Status         [2]int // from the first to the second
	Code           string
	Method         string
	Path           string // a part of it
	Request        string
	IdempotencyKey string
	Token          TokenID
	After          int64 // seq
}
