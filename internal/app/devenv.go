package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The names in dev.env.
const (
	EnvURL         = "PARLEY_URL"
	EnvToken       = "PARLEY_TOKEN"
	EnvGlobalToken = "PARLEY_GLOBAL_TOKEN"
	EnvAdminToken  = "PARLEY_ADMIN_TOKEN"
)

var envNames = []string{EnvURL, EnvToken, EnvGlobalToken, EnvAdminToken}

// DevEnv is what a development server tells the programs of its user: NAME=value lines that a shell
// can read.
type DevEnv map[string]string

// ReadDevEnv reads the file in a data directory. One that is not there is empty.
func ReadDevEnv(dir Dir) (DevEnv, error) {
	env := DevEnv{}
	data, err := os.ReadFile(dir.DevEnv())
	if errors.Is(err, fs.ErrNotExist) {
		return env, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir.DevEnv(), err)
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			env[name] = value
		}
	}
	return env, nil
}

// Lines returns the known values, each as NAME=value.
func (e DevEnv) Lines() []string {
	var lines []string
	for _, name := range envNames {
		if e[name] != "" {
			lines = append(lines, name+"="+e[name])
		}
	}
	return lines
}

// write replaces the file as a whole, so that nobody ever reads half of it.
func (e DevEnv) write(dir Dir) error {
	f, err := os.CreateTemp(filepath.Dir(dir.DevEnv()), "dev.env.*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", dir.DevEnv(), err)
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.WriteString(strings.Join(e.Lines(), "\n") + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", dir.DevEnv(), err)
	}
	if err := os.Rename(f.Name(), dir.DevEnv()); err != nil {
		return fmt.Errorf("write %s: %w", dir.DevEnv(), err)
	}
	return nil
}
