// Command in-cluster runs in a pod. It finds the server as programs in pods do, prints the user that the server sees, and then the names of
// the config maps of its namespace, or the reason why it may not read them.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println(review.Status.UserInfo.Username)
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return err
	}
	maps, err := client.CoreV1().ConfigMaps(string(namespace)).List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return nil
	}
	var names []string
	for _, item := range maps.Items {
		names = append(names, item.Name)
	}
	fmt.Println(strings.Join(names, " "))
	return nil
}
