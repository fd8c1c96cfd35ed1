package doctor

// Media reports whether the storage of files outside the data directory can be used. failed is why not; its text is a
// sentence.
func Media(where, endpoint string, failed error) Finding {
	if failed != nil {
		return Finding{Check: "media", Level: Problem, Found: "files cannot be stored in " + where + ": " + failed.Error()}
	}
	if IsUnencrypted(endpoint) {
		return Finding{Check: "media", Level: Warning, Found: "files are in " + where + ", and reach it unencrypted",
			Remedy: "set --media-endpoint to an https address"}
	}
	return Finding{Check: "media", Level: Fine, Found: "files are in " + where + ", which is not part of a backup"}
}
