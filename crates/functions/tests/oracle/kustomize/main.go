// What kustomize makes of resource lists, to compare our functions with.
//
// Each case on stdin is a line with the name of a function and two lengths in
// bytes, then a list as the function is given it and the list as our function
// left it. The answer is two lines: the resources as kustomize leaves them, and
// as our function did, both as JSON with sorted keys, so that the same Go
// library has read both.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"sigs.k8s.io/kustomize/api/filters/annotations"
	"sigs.k8s.io/kustomize/api/filters/imagetag"
	"sigs.k8s.io/kustomize/api/filters/labels"
	"sigs.k8s.io/kustomize/api/filters/namespace"
	"sigs.k8s.io/kustomize/api/filters/replacement"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/kio/filters"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// What the functionConfigs of all functions may have in them.
type config struct {
	Data         map[string]string   `json:"data"`
	Labels       map[string]string   `json:"labels"`
	Annotations  map[string]string   `json:"annotations"`
	Image        types.Image         `json:"image"`
	ImageFields  []types.FieldSpec   `json:"additionalImageFields"`
	AnnoFields   []types.FieldSpec   `json:"additionalAnnotationFields"`
	Replacements []types.Replacement `json:"replacements"`
}

func main() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		var name string
		var given, left int
		if _, err := fmt.Fscanf(in, "%s %d %d\n", &name, &given, &left); err != nil {
			if err == io.EOF {
				return
			}
			fmt.Fprintln(os.Stderr, "cannot read a case:", err)
			os.Exit(1)
		}
		before, after := make([]byte, given), make([]byte, left)
		for _, part := range [][]byte{before, after} {
			if _, err := io.ReadFull(in, part); err != nil {
				fmt.Fprintln(os.Stderr, "a case is cut off:", err)
				os.Exit(1)
			}
		}
		fmt.Fprintln(out, told(run(name, before)))
		found, _, err := read(after)
		fmt.Fprintln(out, told(found, err))
	}
}

func read(list []byte) ([]*yaml.RNode, *yaml.RNode, error) {
	reader := &kio.ByteReader{Reader: bytes.NewReader(list), OmitReaderAnnotations: true}
	items, err := reader.Read()
	return items, reader.FunctionConfig, err
}

// The resources, once written and read again, as JSON in one line; or the error.
func told(items []*yaml.RNode, err error) string {
	resources := []any{}
	for _, item := range items {
		var text string
		var resource any
		if err == nil {
			text, err = item.String()
		}
		if err == nil {
			err = yaml.Unmarshal([]byte(text), &resource)
		}
		resources = append(resources, resource)
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(resources)
	}
	if err != nil {
		return "error: " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return string(text)
}

func run(name string, list []byte) ([]*yaml.RNode, error) {
	items, given, err := read(list)
	if err != nil {
		return nil, err
	}
	var wanted config
	if given != nil {
		if err := sigsyaml.Unmarshal([]byte(given.MustString()), &wanted); err != nil {
			return nil, err
		}
	}
	if name == "ensure-name-substring" {
		return build(items, wanted.Data)
	}
	filter, err := filterOf(name, wanted)
	if err != nil {
		return nil, err
	}
	return filter.Filter(items)
}

func filterOf(name string, wanted config) (kio.Filter, error) {
	switch name {
	case "set-namespace":
		return namespace.Filter{
			Namespace:              wanted.Data["namespace"],
			SetRoleBindingSubjects: namespace.AllServiceAccountSubjects,
			FsSlice: types.FsSlice{
				field("", "", "Namespace", "metadata/name", true),
				field("apiregistration.k8s.io", "", "APIService", "spec/service/namespace", false),
				field("apiextensions.k8s.io", "", "CustomResourceDefinition",
					"spec/conversion/webhook/clientConfig/service/namespace", false),
			},
		}, nil
	case "set-labels":
		return labels.Filter{Labels: either(wanted.Labels, wanted.Data), FsSlice: labelFields()}, nil
	case "set-annotations":
		return annotations.Filter{
			Annotations: either(wanted.Annotations, wanted.Data),
			FsSlice:     append(annotationFields(), wanted.AnnoFields...),
		}, nil
	case "set-image":
		return imagetag.Filter{ImageTag: wanted.Image, FsSlice: append(imageFields(), wanted.ImageFields...)}, nil
	case "apply-replacements":
		return replacement.Filter{Replacements: wanted.Replacements}, nil
	case "remove-local-config-resources":
		return &filters.IsLocalConfig{}, nil
	}
	return nil, fmt.Errorf("kustomize has nothing like %s", name)
}

func either(one, other map[string]string) map[string]string {
	if len(one) > 0 {
		return one
	}
	return other
}

func field(group, version, kind, path string, create bool) types.FieldSpec {
	return types.FieldSpec{
		Gvk:                resid.Gvk{Group: group, Version: version, Kind: kind},
		Path:               path,
		CreateIfNotPresent: create,
	}
}

func labelFields() types.FsSlice {
	fields := types.FsSlice{
		field("", "", "", "metadata/labels", true),
		field("", "v1", "Service", "spec/selector", true),
		field("", "v1", "ReplicationController", "spec/selector", true),
		field("", "v1", "ReplicationController", "spec/template/metadata/labels", true),
		field("batch", "", "Job", "spec/selector/matchLabels", false),
		field("batch", "", "Job", "spec/template/metadata/labels", true),
		field("batch", "", "CronJob", "spec/jobTemplate/metadata/labels", true),
		field("batch", "", "CronJob", "spec/jobTemplate/spec/template/metadata/labels", true),
		field("policy", "", "PodDisruptionBudget", "spec/selector/matchLabels", false),
		field("networking.k8s.io", "", "NetworkPolicy", "spec/podSelector/matchLabels", false),
		field("networking.k8s.io", "", "NetworkPolicy", "spec/ingress/from/podSelector/matchLabels", false),
		field("networking.k8s.io", "", "NetworkPolicy", "spec/egress/to/podSelector/matchLabels", false),
		field("apps", "", "StatefulSet", "spec/volumeClaimTemplates[]/metadata/labels", true),
	}
	for _, kind := range []string{"Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"} {
		fields = append(fields,
			field("apps", "", kind, "spec/selector/matchLabels", true),
			field("apps", "", kind, "spec/template/metadata/labels", true),
			field("apps", "", kind, "spec/template/spec/topologySpreadConstraints/labelSelector/matchLabels", false),
		)
	}
	return fields
}

func annotationFields() types.FsSlice {
	fields := types.FsSlice{
		field("", "", "", "metadata/annotations", true),
		field("", "v1", "ReplicationController", "spec/template/metadata/annotations", true),
		field("batch", "", "Job", "spec/template/metadata/annotations", true),
		field("batch", "", "CronJob", "spec/jobTemplate/metadata/annotations", true),
		field("batch", "", "CronJob", "spec/jobTemplate/spec/template/metadata/annotations", true),
	}
	for _, kind := range []string{"Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"} {
		fields = append(fields, field("", "", kind, "spec/template/metadata/annotations", true))
	}
	return fields
}

func imageFields() types.FsSlice {
	fields := types.FsSlice{}
	for _, containers := range []string{"containers[]", "initContainers[]"} {
		fields = append(fields, field("", "v1", "Pod", "spec/"+containers+"/image", false))
		for _, kind := range []string{"Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"} {
			fields = append(fields, field("apps", "v1", kind, "spec/template/spec/"+containers+"/image", false))
		}
	}
	return fields
}

// A whole build, which also changes what refers to a name.
func build(items []*yaml.RNode, data map[string]string) ([]*yaml.RNode, error) {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = item.MustString()
	}
	kustomization, err := sigsyaml.Marshal(map[string]any{
		"resources":  []string{"resources.yaml"},
		"namePrefix": data["prepend"],
		"nameSuffix": data["append"],
	})
	if err != nil {
		return nil, err
	}
	files := filesys.MakeFsInMemory()
	if err := files.WriteFile("kustomization.yaml", kustomization); err != nil {
		return nil, err
	}
	if err := files.WriteFile("resources.yaml", []byte(strings.Join(texts, "---\n"))); err != nil {
		return nil, err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, ".")
	if err != nil {
		return nil, err
	}
	var changed []*yaml.RNode
	for _, resource := range built.Resources() {
		changed = append(changed, &resource.RNode)
	}
	return changed, nil
}
