// Package media fetches the files of outgoing messages and stores the files of inbound ones.
//
// Invariants:
//   - A file's type comes from its content, never from its name or from a server's claim.
//   - A stored file is durable when the call returns.
//   - A file appears under its key whole or not at all; the next start removes drafts.
//   - The drafts of a node are in a folder of their own. Another node does not remove them while they may be in use.
//   - A storage that does not work is Unavailable, never a missing file: a missing file fails its message for good.
//   - Neither uploads nor downloads hold a file in memory.
//   - Decoders are bounded in memory and time. A stranger's picture is never decoded.
//   - ffmpeg runs confined, with a fixed input format.
package media
