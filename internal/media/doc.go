// Package media fetches the files that outgoing messages point at and keeps the ones that incoming
// messages bring. It says what a file is by its content, never by its name or by what a server calls
// it, and it returns only once the file is durably on disk.
package media
