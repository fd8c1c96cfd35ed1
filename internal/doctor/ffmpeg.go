package doctor

import (
	"context"
	"os/exec"
	"strings"
)

// FFmpeg looks for the program that converts audio.
func FFmpeg(ctx context.Context) Finding {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ffmpeg", "-hide_banner", "-version").Output()
	if err != nil {
		return Finding{"ffmpeg", Warning, "not found: voice messages must be ogg/opus already", "install ffmpeg", FFmpegMissing, nil}
	}
	fields := strings.Fields(string(out)) // ffmpeg version 7.1 …
	release, version := "of unknown version", "?"
	if len(fields) > 2 {
		release, version = fields[2], fields[2]
	}
	if !strings.Contains(string(out), "--enable-libopus") {
		return Finding{"ffmpeg", Warning, release + " without libopus: voice messages must be ogg/opus already", "install an ffmpeg with libopus",
			FFmpegNoOpus, Values{"version": version}}
	}
	return Finding{"ffmpeg", Fine, release + ", libopus: voice in any format", "", FFmpegFine, Values{"version": version}}
}
