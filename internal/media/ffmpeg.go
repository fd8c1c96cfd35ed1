package media

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"parley/internal/confine"
	"parley/internal/safehttp"
)

// ffmpegMemory is the largest piece of memory that ffmpeg may ask for at once, in bytes.
const ffmpegMemory = "268435456"

// ffmpegLimits bound the process. Most of the address space is for its libraries.
var ffmpegLimits = confine.Limits{Memory: 1 << 30, CPU: convertTimeout}

var ffmpegVersion = regexp.MustCompile(`ffmpeg version (\S+)`)

// FFmpeg is an installed ffmpeg.
func (l *Library) FFmpeg() (version string, ok bool) { return FFmpeg(l.ffmpeg) }

// FFmpeg returns the version of the ffmpeg at a path, or in PATH if empty, and whether it can convert voice notes.
func FFmpeg(path string) (version string, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := ffmpegCommand(ctx, path, "-h", "encoder=libopus").CombinedOutput()
	found := ffmpegVersion.FindSubmatch(out)
	if err != nil || found == nil {
		return "", false
	}
	return string(found[1]), bytes.Contains(out, []byte("Encoder libopus"))
}

func ffmpegCommand(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := confine.Command(ctx, ffmpegLimits, cmp.Or(path, "ffmpeg"), args...)
	cmd.Env = []string{"LC_ALL=C", "MALLOC_ARENA_MAX=2"} // no environment, and little address space per thread
	cmd.WaitDelay = time.Second
	return cmd
}

// toOpus converts a file to ogg/opus, 16 kHz mono. ffmpeg reads a stranger's file, so it is confined: the format is
// fixed, time, memory and output are bounded, and it cannot write files or use the network.
func (l *Library) toOpus(ctx context.Context, path, demuxer string, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, convertTimeout)
	defer cancel()
	cmd := ffmpegCommand(ctx, l.ffmpeg,
		"-nostdin", "-hide_banner", "-loglevel", "error", "-max_alloc", ffmpegMemory, "-threads", "1",
		"-protocol_whitelist", "file,pipe", "-f", demuxer, "-i", "file:"+path,
		"-map", "0:a:0", "-map_metadata", "-1", "-threads", "1",
		"-c:a", "libopus", "-application", "voip", "-b:a", "24k", "-ac", "1", "-ar", "16000",
		"-f", "ogg", "pipe:1")
	out := &limitedWriter{to: to, left: maxVoice}
	said := &lastOutput{}
	cmd.Stdout, cmd.Stderr = out, said
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &Error{"The audio took too long to convert. Send a shorter file, or one in ogg/opus.", errors.Join(err, ctx.Err())}
	case cmd.Process == nil: // it could not be started
		return &Error{"This server can send only ogg/opus voice notes, because ffmpeg is not installed. Send an .ogg/.opus file, or install ffmpeg.", err}
	case out.err != nil:
		return fmt.Errorf("write converted voice note: %w", out.err)
	case out.left < 0:
		return errorf("The voice note is too long. Converted to ogg/opus it must have at most %s.", safehttp.Size(maxVoice))
	case cmd.ProcessState.ExitCode() == confine.Failed:
		return &Error{"This server can send only ogg/opus voice notes, because it cannot run ffmpeg with limits. Send an .ogg/.opus file, or run: parley doctor",
			fmt.Errorf("ffmpeg: %s", strings.TrimSpace(string(said.last)))}
	}
	cause := fmt.Errorf("ffmpeg: %w: %s", err, strings.TrimSpace(string(said.last)))
	if bytes.Contains(said.last, []byte("Unknown encoder")) {
		return &Error{"This server can send only ogg/opus voice notes, because its ffmpeg cannot make opus. Send an .ogg/.opus file, or install an ffmpeg with libopus.", cause}
	}
	return &Error{"The audio could not be converted: it is damaged or in a format that is not known. Send an ogg/opus or mp3 file that plays.", cause}
}

// limitedWriter writes up to a limit and then fails, which ends the program that writes to it.
type limitedWriter struct {
	to   io.Writer
	left int64 // negative: more was written than allowed
	err  error // of the writer underneath
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		return 0, errors.New("more output than allowed")
	}
	n, err := w.to.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}

// lastOutput stores the last output of a program.
type lastOutput struct{ last []byte }

func (t *lastOutput) Write(p []byte) (int, error) {
	const most = 1 << 10
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-most):]
	return len(p), nil
}
