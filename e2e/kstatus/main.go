// Reads objects as JSON, one after another, and prints for each a line with its status as kstatus computes it, and the
// message: the library that kpt and Flux decide with whether an object is done.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	objects := json.NewDecoder(os.Stdin)
	for {
		var object map[string]any
		err := objects.Decode(&object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			fail(err)
		}
		result, err := status.Compute(&unstructured.Unstructured{Object: numbers(object).(map[string]any)})
		if err != nil {
			fail(err)
		}
		fmt.Printf("%s\t%s\n", result.Status, strings.Join(strings.Fields(result.Message), " "))
	}
}

// Whole numbers are int64 in an unstructured object, as its own decoder makes them.
func numbers(value any) any {
	switch value := value.(type) {
	case float64:
		if whole := int64(value); float64(whole) == value {
			return whole
		}
	case map[string]any:
		for key, field := range value {
			value[key] = numbers(field)
		}
	case []any:
		for place, item := range value {
			value[place] = numbers(item)
		}
	}
	return value
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
