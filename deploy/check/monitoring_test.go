package check

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const promtool = "promtool"

// TestAlerts loads the rules and runs their tests with Prometheus' own tool.
func TestAlerts(t *testing.T) {
	need(t, promtool, "prometheus")
	run(t, promtool, "check", "rules", filepath.Join(deploy, "monitoring/alerts.yaml"))
	run(t, promtool, "check", "config", "--syntax-only", filepath.Join(deploy, "monitoring/prometheus.yaml"))
	run(t, promtool, "test", "rules", filepath.Join(deploy, "monitoring/alerts_test.yaml"))
}

// TestEveryAlertIsTested wants every alert in the test where everything is wrong, and texts that help.
func TestEveryAlertIsTested(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert               string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, deploy, "monitoring/alerts.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	tests := read(t, deploy, "monitoring/alerts_test.yaml")
	n := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			n++
			if !strings.Contains(tests, fmt.Sprintf("{alertname=%q}", rule.Alert)) {
				t.Errorf("no test makes %s fire", rule.Alert)
			}
			if s := rule.Labels["severity"]; s != "page" && s != "ticket" {
				t.Errorf("%s has the severity %q", rule.Alert, s)
			}
			if rule.Annotations["summary"] == "" || rule.Annotations["action"] == "" {
				t.Errorf("%s does not say what happened and what to do", rule.Alert)
			}
		}
	}
	if n == 0 {
		t.Error("there are no alerts")
	}
}

type panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr string }
}

// TestDashboard wants panels with their own ids and places, and queries that Prometheus can parse.
func TestDashboard(t *testing.T) {
	need(t, promtool, "prometheus")
	var dashboard struct {
		UID, Title string
		Panels     []panel
		Templating struct{ List []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(read(t, deploy, "monitoring/dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.UID == "" || dashboard.Title == "" || len(dashboard.Panels) == 0 || len(dashboard.Templating.List) != 3 {
		t.Errorf("uid %q, title %q, %d panels, %d variables", dashboard.UID, dashboard.Title, len(dashboard.Panels),
			len(dashboard.Templating.List))
	}
	values := strings.NewReplacer("$__rate_interval", "1m", "$job", "parley", "$instance", ".*")
	rules := "groups: [{name: dashboard, rules: [\n"
	n := 0
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		at := p.GridPos
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other, taken := cells[[2]int{x, y}]; taken || x >= 24 {
					t.Fatalf("panel %q overlaps %q, or is too far right", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %q of type %s has %d queries", p.Title, p.Type, len(p.Targets))
		}
		for _, target := range p.Targets {
			n++
			rules += fmt.Sprintf("{record: 'q%d', expr: %q},\n", n, values.Replace(target.Expr))
			if !strings.Contains(target.Expr, `job="$job", instance=~"$instance"`) {
				t.Errorf("panel %q shows other nodes than those selected", p.Title)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(rules+"]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := run(t, promtool, "check", "rules", file)
	if found := regexp.MustCompile(`SUCCESS: (\d+) rules`).FindStringSubmatch(out); found == nil || found[1] != fmt.Sprint(n) {
		t.Errorf("promtool read %s of %d queries", out, n)
	}
}
