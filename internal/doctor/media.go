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

// FilesDisk checks the free space of the directory of files, below the least of which none is stored.
func FilesDisk(free, least int64) []Finding {
	const remedy = "make room on the disk, or lower --media-min-free-mib"
	switch {
	case free < least:
		return []Finding{{Check: "media", Level: Problem, Code: "files_full", Remedy: remedy,
			Found: "the disk of files has " + Size(free) + " left: below " + Size(least) + " no file is accepted or fetched"}}
	case free < 2*least:
		return []Finding{{Check: "media", Level: Warning, Code: "files_low", Remedy: remedy,
			Found: "the disk of files has " + Size(free) + " left: below " + Size(least) + " no file is accepted or fetched"}}
	}
	return nil
}
