// Package suite is a test suite of an operator as controller-runtime's users write it. It knows nothing of Keelson: it runs with whatever
// KUBEBUILDER_ASSETS contains.
package suite

import (
	"context"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const namespace = "default"

var (
	environment = &envtest.Environment{
		CRDInstallOptions: envtest.CRDInstallOptions{Paths: []string{"widgets.yaml"}, ErrorIfPathMissing: true},
	}
	config *rest.Config
	api    client.Client
)

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	var err error
	if config, err = environment.Start(); err != nil {
		panic(err)
	}
	if api, err = client.New(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := environment.Stop(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// eventually polls until the condition is met; an error counts as not yet.
func eventually(t *testing.T, condition func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 60*time.Second, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, last)
	}
}

const finalizer = "suite.example.com/release"

// reconciler keeps a Deployment for each ConfigMap with the label, and releases the ConfigMap when it is deleted.
type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var source corev1.ConfigMap
	if err := r.Get(ctx, request.NamespacedName, &source); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if source.DeletionTimestamp != nil {
		controllerutil.RemoveFinalizer(&source, finalizer)
		return ctrl.Result{}, r.Update(ctx, &source)
	}
	if controllerutil.AddFinalizer(&source, finalizer) {
		if err := r.Update(ctx, &source); err != nil {
			return ctrl.Result{}, err
		}
	}
	deployment := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: source.Name, Namespace: source.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, &deployment, func() error {
		labels := map[string]string{"app": source.Name}
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: source.Data["image"]}}
		return controllerutil.SetControllerReference(&source, &deployment, r.Scheme())
	})
	return ctrl.Result{}, err
}

func TestManagerReconcilesOwnedObjects(t *testing.T) {
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme.Scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	controller := ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{})
	if err := controller.Complete(&reconciler{manager.GetClient()}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- manager.Start(ctx) }()

	source := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace}, Data: map[string]string{"image": "nginx:1"}}
	if err := api.Create(ctx, &source); err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	image := func(wanted string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			if err := api.Get(ctx, client.ObjectKeyFromObject(&source), &deployment); err != nil {
				return err
			}
			if got := deployment.Spec.Template.Spec.Containers[0].Image; got != wanted {
				return apierrors.NewConflict(appsv1.Resource("deployments"), got, nil)
			}
			return nil
		})
	}
	image("nginx:1")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"image":"nginx:2"}}`))
	if err := api.Patch(ctx, &source, patch); err != nil {
		t.Fatal(err)
	}
	image("nginx:2")
	// No garbage collector runs in envtest: suites check owner references instead of the deletion of what is owned.
	if !metav1.IsControlledBy(&deployment, &source) {
		t.Fatalf("owners: %v", deployment.OwnerReferences)
	}
	if err := api.Delete(ctx, &source); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(&source), &source)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return apierrors.NewConflict(corev1.Resource("configmaps"), source.Name, err)
	})
	if err := api.Get(ctx, client.ObjectKeyFromObject(&deployment), &deployment); err != nil {
		t.Fatalf("an owned object was deleted although no controller runs: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestCustomResourcesOfTheSuite(t *testing.T) {
	widget := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(0)}}}
	widget.SetGroupVersionKind(schema.GroupVersionKind{Group: "suite.example.com", Version: "v1", Kind: "Widget"})
	widget.SetNamespace(namespace)
	widget.SetName("first")
	if err := api.Create(t.Context(), widget.DeepCopy()); !apierrors.IsInvalid(err) {
		t.Fatalf("size 0: %v", err)
	}
	if err := unstructured.SetNestedField(widget.Object, int64(3), "spec", "size"); err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), widget); err != nil {
		t.Fatal(err)
	}
	if colour, _, _ := unstructured.NestedString(widget.Object, "spec", "colour"); colour != "green" {
		t.Fatalf("default: %q", colour)
	}
	if err := unstructured.SetNestedField(widget.Object, true, "status", "ready"); err != nil {
		t.Fatal(err)
	}
	if err := api.Status().Update(t.Context(), widget); err != nil {
		t.Fatal(err)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(widget), widget); err != nil {
		t.Fatal(err)
	}
	if ready, _, _ := unstructured.NestedBool(widget.Object, "status", "ready"); !ready || widget.GetGeneration() != 1 {
		t.Fatalf("ready %v, generation %d", ready, widget.GetGeneration())
	}
}

func TestPodsNeedNoServiceAccount(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: namespace}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "nginx"}}
	if err := api.Create(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning
	if err := api.Status().Update(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(&pod), &pod); err != nil || pod.Status.Phase != corev1.PodRunning {
		t.Fatalf("%v, phase %s", err, pod.Status.Phase)
	}
}

func TestUsersHaveTheRightsOfTheirRoles(t *testing.T) {
	user, err := environment.AddUser(envtest.User{Name: "reader", Groups: []string{"readers"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := client.New(user.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var secrets corev1.SecretList
	if err := reader.List(t.Context(), &secrets, client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
		t.Fatalf("without a role: %v", err)
	}
	binding := rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "readers"}}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "readers"}}
	if err := api.Create(t.Context(), &binding); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error { return reader.List(ctx, &secrets, client.InNamespace(namespace)) })
}

func TestKubectlIsConfigured(t *testing.T) {
	user, err := environment.AddUser(envtest.User{Name: "operator", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := user.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kubectl.Path); err != nil {
		t.Skip("no kubectl among the assets")
	}
	out, errors, err := kubectl.Run("get", "namespace", "default", "-o", "name")
	if err != nil {
		t.Fatalf("%v: %v", err, errors)
	}
	text := make([]byte, 64)
	n, _ := out.Read(text)
	if got := string(text[:n]); got != "namespace/default\n" {
		t.Fatalf("kubectl: %q", got)
	}
}
