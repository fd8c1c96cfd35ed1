// Package callback tells the customer's servers what happened: events to webhooks, and the outcome of
// login links to the addresses that their requests named. Everything is signed, tried again on a
// schedule, and kept in the store, so that it survives any end of the process. What an event is about
// it does not know, nor who may change webhooks.
//
// Three goroutines share the work. The planner reads the event log after each webhook's cursor and
// stores deliveries. The dispatcher takes those that are due, hands them to senders, and judges how
// each endpoint does. The recorder stores what became of them, many at a time. The store is the truth:
// a delivery that was attempted but not recorded is attempted again under the same event id.
package callback
