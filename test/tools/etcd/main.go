// Command etcd is the newest etcd that the suites run against, built from the published modules. Its second half is the part of etcdutl
// that restores snapshots: `etcd snapshot restore FILE --data-dir=...`.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "snapshot" {
		root := &cobra.Command{Use: "etcd"}
		root.AddCommand(etcdutl.NewSnapshotCommand())
		if err := root.Execute(); err != nil {
			os.Exit(1)
		}
		return
	}
	etcdmain.Main(os.Args)
}
