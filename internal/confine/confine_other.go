//go:build !linux || !(amd64 || arm64)

package confine

import (
	"context"
	"os/exec"
)

// Available reports whether programs are confined on this system. The doctor reports it.
const Available = false

// Command is exec.CommandContext, without limits.
func Command(ctx context.Context, _ Limits, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, program, args...)
}

// HidesFiles reports whether this kernel can keep a program from reading files.
func HidesFiles() bool { return false }

// HideMemory does nothing.
func HideMemory() error { return nil }
