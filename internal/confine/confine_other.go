//go:build !linux || !(amd64 || arm64)

package confine

import (
	"context"
	"os/exec"
)

// Available reports whether programs are confined on this system. The doctor says so where they are not.
const Available = false

// Command is exec.CommandContext: there are no limits here.
func Command(ctx context.Context, _ Limits, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, program, args...)
}
