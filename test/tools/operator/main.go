// Operator of Gauges as controller-runtime's users write it: it knows nothing of Keelson. It prints a line for each
// reconciliation, and is run by test/test/clients/operators.test.ts.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const finalizer = "gauges.example.com/release"

type GaugeSpec struct {
	Value int64 `json:"value"`
}

type GaugeStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Doubled            int64              `json:"doubled,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type Gauge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GaugeSpec   `json:"spec,omitempty"`
	Status            GaugeStatus `json:"status,omitempty"`
}

type GaugeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gauge `json:"items"`
}

func (g *Gauge) DeepCopyObject() runtime.Object {
	to := &Gauge{TypeMeta: g.TypeMeta, Spec: g.Spec, Status: g.Status}
	g.ObjectMeta.DeepCopyInto(&to.ObjectMeta)
	to.Status.Conditions = append([]metav1.Condition(nil), g.Status.Conditions...)
	return to
}

func (l *GaugeList) DeepCopyObject() runtime.Object {
	to := &GaugeList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&to.ListMeta)
	for i := range l.Items {
		to.Items = append(to.Items, *l.Items[i].DeepCopyObject().(*Gauge))
	}
	return to
}

// onlyDeletions makes the number of reconciliations predictable.
var onlyDeletions = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var gauge Gauge
	if err := r.Get(ctx, request.NamespacedName, &gauge); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if gauge.DeletionTimestamp != nil {
		if !controllerutil.RemoveFinalizer(&gauge, finalizer) {
			return ctrl.Result{}, nil
		}
		fmt.Printf("released %s\n", gauge.Name)
		return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, &gauge))
	}
	before := gauge.DeepCopyObject().(*Gauge)
	if controllerutil.AddFinalizer(&gauge, finalizer) {
		if err := r.Patch(ctx, &gauge, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return ctrl.Result{}, err
		}
	}
	reading := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: gauge.Name, Namespace: gauge.Namespace}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, &reading, func() error {
		reading.Data = map[string]string{"value": fmt.Sprint(gauge.Spec.Value)}
		return controllerutil.SetControllerReference(&gauge, &reading, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	gauge.Status.Doubled = 2 * gauge.Spec.Value
	gauge.Status.ObservedGeneration = gauge.Generation
	meta.SetStatusCondition(&gauge.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Read", ObservedGeneration: gauge.Generation,
	})
	if err := r.Status().Update(ctx, &gauge); err != nil {
		return ctrl.Result{}, err
	}
	fmt.Printf("reconciled %s %d\n", gauge.Name, gauge.Generation)
	return ctrl.Result{}, nil
}

func run() error {
	version := schema.GroupVersion{Group: "gauges.example.com", Version: "v1"}
	scheme.Scheme.AddKnownTypes(version, &Gauge{}, &GaugeList{})
	metav1.AddToGroupVersion(scheme.Scheme, version)
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	// The leader outlives a restart of the server, and hands over when it is stopped.
	lease, renew, retry := 120*time.Second, 100*time.Second, 500*time.Millisecond
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme.Scheme,
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "gauges.example.com",
		LeaderElectionNamespace:       "default",
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
	})
	if err != nil {
		return err
	}
	go func() {
		<-manager.Elected()
		fmt.Println("leading")
	}()
	err = ctrl.NewControllerManagedBy(manager).
		For(&Gauge{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}, builder.WithPredicates(onlyDeletions)).
		Complete(&reconciler{manager.GetClient()})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
