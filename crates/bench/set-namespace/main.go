// A KRM function as most are written: in Go, on the usual libraries. It sets
// the namespace of every resource. The benchmark measures against it.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

type config struct {
	Data struct {
		Namespace string `yaml:"namespace"`
	} `yaml:"data"`
}

func main() {
	var c config
	setNamespace := kio.FilterFunc(func(items []*yaml.RNode) ([]*yaml.RNode, error) {
		for _, item := range items {
			if err := item.SetNamespace(c.Data.Namespace); err != nil {
				return nil, err
			}
		}
		return items, nil
	})
	processor := framework.SimpleProcessor{Config: &c, Filter: setNamespace}
	rw := &kio.ByteReadWriter{Reader: os.Stdin, Writer: os.Stdout, KeepReaderAnnotations: true}
	if err := framework.Execute(processor, rw); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
