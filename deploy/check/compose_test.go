package check

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// load reads a compose file as docker compose does.
func load(t *testing.T, name string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(deploy, name)},
		cli.WithWorkingDirectory(absolute(t, deploy)), cli.WithEnv([]string{"PARLEY_HOST=chat.example.com"}), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return project
}

// isParley reports whether a service runs our image.
func isParley(s types.ServiceConfig) bool { return strings.HasPrefix(s.Image, "parley:") }

func TestCompose(t *testing.T) {
	for _, name := range []string{"compose.yaml", "compose.cluster.yaml"} {
		t.Run(name, func(t *testing.T) {
			project := load(t, name)
			for _, s := range project.Services {
				checkService(t, s)
			}
			if ports := project.Services["proxy"].Ports; len(ports) != 3 {
				t.Errorf("the proxy publishes %v", ports)
			}
		})
	}
}

// checkService wants no rights beyond what a service needs, and files that exist.
func checkService(t *testing.T, s types.ServiceConfig) {
	t.Helper()
	if !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
		t.Errorf("%s can get new privileges", s.Name)
	}
	if s.Restart != types.RestartPolicyUnlessStopped {
		t.Errorf("%s does not start again", s.Name)
	}
	if s.Name != "proxy" && len(s.Ports) > 0 {
		t.Errorf("%s can be reached around the proxy", s.Name)
	}
	for _, v := range s.Volumes {
		if _, err := os.Stat(v.Source); v.Type == types.VolumeTypeBind && err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if !isParley(s) {
		return
	}
	if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") || s.MemLimit == 0 || s.PidsLimit == 0 {
		t.Errorf("%s has rights or memory that it does not need", s.Name)
	}
	if s.StopGracePeriod == nil || time.Duration(*s.StopGracePeriod) < 40*time.Second {
		t.Errorf("%s is killed before it can end: a signal ends it within 30 s", s.Name)
	}
	if s.Build == nil || s.Build.Target != "parley" || !filepath.IsAbs(s.Build.Context) {
		t.Errorf("%s cannot be built", s.Name)
	} else if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
		t.Errorf("%s: %v", s.Name, err)
	}
	if url := s.Environment["PARLEY_PUBLIC_URL"]; url == nil || *url != "https://chat.example.com" {
		t.Errorf("%s makes links to another address than the proxy's", s.Name)
	}
}

// TestComposeCluster wants what makes the nodes one server.
func TestComposeCluster(t *testing.T) {
	project := load(t, "compose.cluster.yaml")
	var nodes []string
	urls := map[string]bool{}
	for name, s := range project.Services {
		if !isParley(s) {
			continue
		}
		nodes = append(nodes, name+":7275")
		urls[*s.Environment["PARLEY_NODE_URL"]] = true
		for _, from := range []string{"primary", "standby"} {
			if s.DependsOn[from].Condition != types.ServiceConditionHealthy {
				t.Errorf("%s does not wait for %s", name, from)
			}
		}
		for _, setting := range []string{"PARLEY_DATABASE_FILE", "PARLEY_SECRET_KEY_FILE"} {
			path := *s.Environment[setting]
			if !slices.ContainsFunc(s.Secrets, func(secret types.ServiceSecretConfig) bool { return "/run/secrets/"+secret.Source == path }) {
				t.Errorf("%s has no secret %s", name, path)
			}
		}
	}
	slices.Sort(nodes)
	if len(nodes) != 3 || len(urls) != 3 {
		t.Errorf("nodes %v with addresses %v, want 3 of each", nodes, urls)
	}
	if balanced := *project.Services["proxy"].Environment["PARLEY_NODES"]; balanced != strings.Join(nodes, " ") {
		t.Errorf("the proxy balances over %s, but the nodes are %v", balanced, nodes)
	}
	if !project.Networks["back"].Internal {
		t.Error("the databases can be reached from outside")
	}
	for _, name := range []string{"primary", "standby"} {
		if _, outside := project.Services[name].Networks["front"]; outside {
			t.Errorf("%s is on the network of the proxy", name)
		}
	}
}
