// Package media fetches the files of outgoing messages and stores the files of inbound ones.
//
// Invariants:
//   - A file's type comes from its content, never from its name or from a server's claim.
//   - A stored file is durable when the call returns.
//   - A file appears under its key whole or not at all; the next start removes drafts.
//   - Decoders are bounded in memory and time. A stranger's picture is never decoded.
//   - ffmpeg runs confined, with a fixed input format.
package media
