package check

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// manifests are the objects that kustomize makes. Each kind has the type of Kubernetes' own API.
type manifests struct {
	namespace core.Namespace
	account   core.ServiceAccount
	nodes     apps.StatefulSet
	config    core.ConfigMap
	claim     core.PersistentVolumeClaim
	budget    policy.PodDisruptionBudget
	network   networking.NetworkPolicy
	services  map[string]core.Service
	secret    core.Secret // the template
}

// build runs kustomize and decodes the objects. Fields that the API does not have are errors.
func build(t *testing.T) manifests {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(deploy, "kubernetes"))
	if err != nil {
		t.Fatal(err)
	}
	m := manifests{services: map[string]core.Service{}}
	kinds := map[string]any{
		"v1/Namespace": &m.namespace, "v1/ServiceAccount": &m.account, "apps/v1/StatefulSet": &m.nodes, "v1/ConfigMap": &m.config,
		"v1/PersistentVolumeClaim": &m.claim, "policy/v1/PodDisruptionBudget": &m.budget,
		"networking.k8s.io/v1/NetworkPolicy": &m.network,
	}
	seen := map[string]bool{}
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		kind := resource.GetApiVersion() + "/" + resource.GetKind()
		var service core.Service
		into := kinds[kind]
		if kind == "v1/Service" {
			into = &service
		} else if into == nil || seen[kind] {
			t.Fatalf("%s %s: another object of this kind is not expected", kind, resource.GetName())
		}
		seen[kind] = true
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Errorf("%s %s: %v", kind, resource.GetName(), err)
		}
		if service.Name != "" {
			m.services[service.Name] = service
		}
		if kind != "v1/Namespace" && resource.GetNamespace() != "parley" {
			t.Errorf("%s %s is in the namespace %q", kind, resource.GetName(), resource.GetNamespace())
		}
	}
	for kind := range kinds {
		if !seen[kind] {
			t.Errorf("there is no %s", kind)
		}
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, deploy, "kubernetes/secret.example.yaml")), &m.secret); err != nil {
		t.Errorf("secret.example.yaml: %v", err)
	}
	return m
}

// TestKubernetes checks that the objects fit each other.
func TestKubernetes(t *testing.T) {
	m := build(t)
	if t.Failed() {
		return
	}
	pod := m.nodes.Spec.Template.Spec
	labels := m.nodes.Spec.Template.Labels
	c := pod.Containers[0]

	for what, selector := range map[string]map[string]string{
		"the StatefulSet":         m.nodes.Spec.Selector.MatchLabels,
		"the PodDisruptionBudget": m.budget.Spec.Selector.MatchLabels,
		"the NetworkPolicy":       m.network.Spec.PodSelector.MatchLabels,
		"the Service":             m.services["parley"].Spec.Selector,
		"the headless Service":    m.services["parley-nodes"].Spec.Selector,
	} {
		if len(selector) == 0 || !contains(labels, selector) {
			t.Errorf("%s selects %v, but the pods have %v", what, selector, labels)
		}
	}
	if c.Image != "registry.example.com/parley:"+release(t) {
		t.Errorf("the image is %s, the source %s", c.Image, release(t))
	}
	if v := labels["app.kubernetes.io/version"]; v != release(t) {
		t.Errorf("the label of the version is %s, the source %s", v, release(t))
	}
	headless := m.services[m.nodes.Spec.ServiceName]
	if headless.Spec.ClusterIP != core.ClusterIPNone || !headless.Spec.PublishNotReadyAddresses {
		t.Error("nodes have no names, or lose them while they are not ready")
	}
	if *m.nodes.Spec.Replicas < 3 || m.budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Error("at least 3 nodes, of which 1 may be missing, are wanted")
	}
	checkPorts(t, m, c)
	checkProbes(t, c)
	checkEnvironment(t, m, c)
	checkVolumes(t, m, pod)
	checkSecurity(t, pod, c)

	if stop := c.Lifecycle.PreStop.Exec; stop == nil || strings.Join(stop.Command, " ") != "parley node drain --wait --linger 10s" {
		t.Error("a node that ends does not drain first")
	}
	if *pod.TerminationGracePeriodSeconds < 60 {
		t.Error("a node has not enough time to drain and to end")
	}
	if m.namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Error("the namespace allows privileged pods")
	}
}

func contains(labels, selector map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// checkPorts wants every named port to be one of the container's.
func checkPorts(t *testing.T, m manifests, c core.Container) {
	t.Helper()
	ports := map[string]int32{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	if ports["http"] != 7275 || ports["node"] != 7276 {
		t.Errorf("the ports are %v", ports)
	}
	names := []string{c.StartupProbe.HTTPGet.Port.StrVal, c.LivenessProbe.HTTPGet.Port.StrVal, c.ReadinessProbe.HTTPGet.Port.StrVal}
	for _, service := range m.services {
		for _, p := range service.Spec.Ports {
			names = append(names, p.TargetPort.StrVal)
		}
	}
	for _, rule := range m.network.Spec.Ingress {
		for _, p := range rule.Ports {
			names = append(names, p.Port.StrVal)
			if p.Port.StrVal == "node" && len(rule.From) == 0 {
				t.Error("everybody may reach the port for nodes")
			}
		}
	}
	for _, name := range names {
		if ports[name] == 0 {
			t.Errorf("there is no port %q", name)
		}
	}
}

// checkProbes wants each question at the right path: a node that waits for the database must not be killed for it.
func checkProbes(t *testing.T, c core.Container) {
	t.Helper()
	if c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/livez" || c.StartupProbe.HTTPGet.Path != "/livez" {
		t.Error("a probe asks at the wrong path")
	}
	if c.ReadinessProbe.TimeoutSeconds < 2 {
		t.Error("/readyz responds within 2 s: the probe must wait that long")
	}
}

// checkEnvironment wants the settings of a node, and everything they refer to.
func checkEnvironment(t *testing.T, m manifests, c core.Container) {
	t.Helper()
	env, order := map[string]string{}, []string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
		order = append(order, e.Name)
	}
	if c.EnvFrom[0].ConfigMapRef.Name != m.config.Name {
		t.Errorf("settings come from the ConfigMap %s, but it is called %s", c.EnvFrom[0].ConfigMapRef.Name, m.config.Name)
	}
	maps.Copy(env, m.config.Data)
	if url := env["PARLEY_NODE_URL"]; url != "https://$(POD_NAME)."+m.nodes.Spec.ServiceName+".$(POD_NAMESPACE).svc:7276" {
		t.Errorf("other nodes look for a node at %s", url)
	}
	// Kubernetes replaces $(NAME) only by what it has read before.
	if at := slices.Index(order, "PARLEY_NODE_URL"); at < slices.Index(order, "POD_NAME") || at < slices.Index(order, "POD_NAMESPACE") {
		t.Error("PARLEY_NODE_URL comes before what it refers to")
	}
	for _, name := range []string{"PARLEY_DATABASE_FILE", "PARLEY_SECRET_KEY_FILE"} {
		if _, ok := m.secret.StringData[filepath.Base(env[name])]; !ok || filepath.Dir(env[name]) != "/run/secrets/parley" {
			t.Errorf("%s is %s, which the Secret does not have", name, env[name])
		}
	}
	_, root, _ := strings.Cut(m.secret.StringData["database"], "sslrootcert=/run/secrets/parley/")
	if _, ok := m.secret.StringData[root]; !ok {
		t.Errorf("the address of the database names the file %q, which the Secret does not have", root)
	}
	// A volume belongs to a group, and Parley wants a directory of its own.
	if filepath.Dir(env["PARLEY_DATA"]) != "/data" || filepath.Dir(env["PARLEY_MEDIA"]) != "/media" {
		t.Errorf("data is in %s and media in %s, but the volumes are /data and /media", env["PARLEY_DATA"], env["PARLEY_MEDIA"])
	}
}

// checkVolumes wants each volume to be mounted, and what it refers to.
func checkVolumes(t *testing.T, m manifests, pod core.PodSpec) {
	t.Helper()
	mounts := map[string]string{}
	for _, mount := range pod.Containers[0].VolumeMounts {
		mounts[mount.Name] = mount.MountPath
	}
	for _, v := range pod.Volumes {
		if mounts[v.Name] == "" {
			t.Errorf("the volume %s is not mounted", v.Name)
		}
		delete(mounts, v.Name)
		if claim := v.PersistentVolumeClaim; claim != nil && claim.ClaimName != m.claim.Name {
			t.Errorf("the claim is called %s, not %s", m.claim.Name, claim.ClaimName)
		}
		if secret := v.Secret; secret != nil && (secret.SecretName != m.secret.Name || *secret.DefaultMode != 0o400) {
			t.Errorf("the Secret is called %s with mode %o", secret.SecretName, *secret.DefaultMode)
		}
	}
	if len(mounts) > 0 {
		t.Errorf("there are no volumes for %v", mounts)
	}
	if !slices.Contains(m.claim.Spec.AccessModes, core.ReadWriteMany) {
		t.Error("only one node can have the media")
	}
}

// checkSecurity wants what the pod security standard "restricted" wants, and a root file system that cannot be written to.
func checkSecurity(t *testing.T, pod core.PodSpec, c core.Container) {
	t.Helper()
	of, in := pod.SecurityContext, c.SecurityContext
	if !*of.RunAsNonRoot || *of.RunAsUser != 65532 || *of.FSGroup != 65532 || of.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		t.Error("the pod runs as another user than the image's, or without a filter of system calls")
	}
	if *in.AllowPrivilegeEscalation || !*in.ReadOnlyRootFilesystem || !slices.Contains(in.Capabilities.Drop, "ALL") {
		t.Error("the container has rights that it does not need")
	}
	if *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks {
		t.Error("the pod gets a token of the Kubernetes API, or variables that begin with PARLEY_")
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Memory().IsZero() {
		t.Error("the memory of a node has no limit")
	}
}
