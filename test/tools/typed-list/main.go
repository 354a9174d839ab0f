// Command typed-list reads pods with the typed Go client, as lists and as watches, and prints each object as one line of JSON. What it
// prints does not depend on the encoding unless a server says different things in different encodings.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// line is what is printed for each object of a list (without a type) and each event of a watch.
type line struct {
	Type   watch.EventType `json:"type,omitempty"`
	Object *corev1.Pod     `json:"object"`
}

// summary ends the output of a list.
type summary struct {
	ResourceVersion string `json:"resourceVersion"`
	Count           int    `json:"count"`
	Pages           int    `json:"pages"`
}

func main() {
	server := flag.String("server", "", "URL of the server")
	mediaType := flag.String("media-type", "application/vnd.kubernetes.protobuf", "the only media type that is accepted")
	namespace := flag.String("namespace", "", "namespace; all of them when empty")
	limit := flag.Int64("limit", 0, "greatest size of a page; 0 = one list")
	from := flag.String("watch-from", "", "watch from this resourceVersion instead of listing")
	until := flag.String("until", "", "end the watch after the event of this resourceVersion")
	flag.Parse()

	config := &rest.Config{Host: *server, QPS: -1}
	config.ContentType = *mediaType
	config.AcceptContentTypes = *mediaType
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	err := run(config, *namespace, *limit, *from, *until, json.NewEncoder(out))
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(config *rest.Config, namespace string, limit int64, from, until string, out *json.Encoder) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if from != "" {
		return follow(client, namespace, from, until, out)
	}
	return list(client, namespace, limit, out)
}

// print leaves out kind and apiVersion: in protobuf an envelope has them, in JSON the object itself.
func print(out *json.Encoder, eventType watch.EventType, pod *corev1.Pod) error {
	pod.TypeMeta = metav1.TypeMeta{}
	return out.Encode(line{Type: eventType, Object: pod})
}

func list(client kubernetes.Interface, namespace string, limit int64, out *json.Encoder) error {
	seen := summary{}
	options := metav1.ListOptions{Limit: limit}
	for {
		page, err := client.CoreV1().Pods(namespace).List(context.Background(), options)
		if err != nil {
			return err
		}
		if seen.ResourceVersion != "" && seen.ResourceVersion != page.ResourceVersion {
			return fmt.Errorf("a page of %s follows one of %s", page.ResourceVersion, seen.ResourceVersion)
		}
		seen.ResourceVersion = page.ResourceVersion
		seen.Pages++
		seen.Count += len(page.Items)
		for i := range page.Items {
			if err := print(out, "", &page.Items[i]); err != nil {
				return err
			}
		}
		if page.Continue == "" {
			return out.Encode(seen)
		}
		options.Continue = page.Continue
	}
}

func follow(client kubernetes.Interface, namespace, from, until string, out *json.Encoder) error {
	events, err := client.CoreV1().Pods(namespace).Watch(context.Background(), metav1.ListOptions{
		ResourceVersion:     from,
		AllowWatchBookmarks: true,
	})
	if err != nil {
		return err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		pod, known := event.Object.(*corev1.Pod)
		if !known {
			return fmt.Errorf("%s with %T: %v", event.Type, event.Object, event.Object)
		}
		// Bookmarks come when they come.
		if event.Type != watch.Bookmark {
			if err := print(out, event.Type, pod); err != nil {
				return err
			}
		}
		if pod.ResourceVersion == until {
			return nil
		}
	}
	return fmt.Errorf("the watch ended before the event of resourceVersion %s", until)
}
