package doctor

// Media reports whether the storage of files outside the data directory can be used. failed is why not; its text is a
// sentence.
func Media(where, endpoint string, failed error) Finding {
	if failed != nil {
		return Finding{"media", Problem, "files cannot be stored in " + where + ": " + failed.Error(), ""}
	}
	if IsUnencrypted(endpoint) {
		return Finding{"media", Warning, "files are in " + where + ", and reach it unencrypted", "set --media-endpoint to an https address"}
	}
	return Finding{"media", Fine, "files are in " + where + ", which is not part of a backup", ""}
}
