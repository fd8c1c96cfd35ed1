package doctor

import (
	"context"
	"errors"
	"os/exec"
	"strings"

	"parley/internal/confine"
)

// FFmpeg checks for the program that converts audio.
func FFmpeg(ctx context.Context) Finding {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := confine.Command(ctx, confine.Limits{}, "ffmpeg", "-hide_banner", "-version")
	out, err := cmd.Output()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.ExitCode() == confine.Failed {
		reason := strings.TrimSpace(string(ended.Stderr))
		return Finding{Check: "ffmpeg", Level: Warning,
			Found:  "cannot be run with limits, so voice messages must be ogg/opus already: " + reason,
			Remedy: "allow seccomp filters to this process"}
	}
	if errors.Is(err, exec.ErrNotFound) {
		return Finding{Check: "ffmpeg", Level: Fine, Found: "not found: voice messages must be ogg/opus already",
			Remedy: "install ffmpeg"} // a hint: it is optional
	}
	if err != nil {
		return Finding{Check: "ffmpeg", Level: Warning, Found: "does not run, so voice messages must be ogg/opus already: " + err.Error(),
			Remedy: "install ffmpeg from a package of your system: a confined one finds its libraries there"}
	}
	fields := strings.Fields(string(out)) // ffmpeg version 7.1 …
	release := "of unknown version"
	if len(fields) > 2 {
		release = fields[2]
	}
	if !strings.Contains(string(out), "--enable-libopus") {
		return Finding{Check: "ffmpeg", Level: Warning, Found: release + " without libopus: voice messages must be ogg/opus already",
			Remedy: "install an ffmpeg with libopus"}
	}
	if !confine.Available {
		return Finding{Check: "ffmpeg", Level: Warning,
			Found: release + ", libopus: voice in any format. On this system it reads the files of callers without " +
				"limits on memory, CPU, files and network", Remedy: "run parley on Linux, or without ffmpeg"}
	}
	if !confine.HidesFiles() {
		return Finding{Check: "ffmpeg", Level: Warning,
			Found: release + ", libopus: voice in any format. This kernel lacks Landlock, so an audio file that takes ffmpeg over " +
				"could read secret.key and the database", Remedy: "use Linux 5.13 or later with Landlock on, or run parley without ffmpeg"}
	}
	return Finding{Check: "ffmpeg", Level: Fine, Found: release + ", libopus: voice in any format"}
}
