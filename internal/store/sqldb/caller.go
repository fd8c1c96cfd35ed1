package sqldb

import "context"

// callerKey is the key of a context value.
type callerKey struct{}

// For returns a context whose reads count as those of a caller, such as a token. Callers share the connections for reading fairly.
// Reads without a caller are those of one more.
func For(ctx context.Context, caller string) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// Caller is the caller of [For]; empty: none.
func Caller(ctx context.Context) string {
	caller, _ := ctx.Value(callerKey{}).(string)
	return caller
}
