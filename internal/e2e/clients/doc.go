// Package clients tests that a generator makes a client of the OpenAPI document that compiles and works with a real server.
// It is a module of its own, so that nothing else downloads what generated code imports.
package clients
