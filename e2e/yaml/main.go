// Reads YAML as kubectl and Helm do, with their library. The input is a list of texts as JSON; for each it prints a line: what
// the text holds as JSON, or nothing if the library does not read it.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	var texts []string
	if err := json.NewDecoder(os.Stdin).Decode(&texts); err != nil {
		panic(err)
	}
	for _, text := range texts {
		// What is not read gives an empty line.
		read, _ := yaml.YAMLToJSON([]byte(text))
		fmt.Println(string(read))
	}
}
