// Evaluates expressions as an admission policy of the API server does: with its library, its environment for new policies at the
// current compatibility version, and variables of any type. The first line of the input is a map of objects as JSON; each other
// line is a map with an object's name and an expression. For each of these it prints a line: what the expression is worth.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

type asked struct {
	Object     string `json:"object"`
	Expression string `json:"expression"`
}

// answer has one of these.
type answer struct {
	// The API server does not take a policy with it.
	Refused string `json:"refused,omitempty"`
	// It has no value for this object.
	Failed string `json:"failed,omitempty"`
	// In UTC.
	Time string `json:"time,omitempty"`
	// The name of a type that has no form in JSON.
	Other string `json:"other,omitempty"`
	// Numbers with a fraction or an exponent are doubles, others are ints.
	Value json.RawMessage `json:"value,omitempty"`
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 1<<24)
	input.Scan()
	var objects map[string]any
	// As in an unstructured object: whole numbers are int64.
	must(utiljson.Unmarshal(input.Bytes(), &objects))
	env := policies()
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for input.Scan() {
		var line asked
		must(json.Unmarshal(input.Bytes(), &line))
		must(output.Encode(evaluate(env, line.Expression, objects[line.Object])))
	}
	must(input.Err())
}

func policies() *cel.Env {
	set := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	set, err := set.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("object", cel.DynType)},
	})
	must(err)
	env, err := set.Env(environment.NewExpressions)
	must(err)
	return env
}

func evaluate(env *cel.Env, expression string, object any) answer {
	ast, issues := env.Compile(expression)
	if issues != nil {
		return answer{Refused: issues.String()}
	}
	program, err := env.Program(ast, cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		return answer{Refused: err.Error()}
	}
	value, _, err := program.Eval(map[string]any{"object": object})
	if err != nil {
		return answer{Failed: err.Error()}
	}
	for optional, is := value.(*types.Optional); is; optional, is = value.(*types.Optional) {
		if value = types.NullValue; optional.HasValue() {
			value = optional.GetValue()
		}
	}
	if moment, is := value.(types.Timestamp); is {
		return answer{Time: moment.UTC().Format(time.RFC3339Nano)}
	}
	text, other := written(value)
	if other != "" {
		return answer{Other: other}
	}
	return answer{Value: json.RawMessage(text)}
}

// written gives a value as JSON, or else the name of a type that has no such form.
func written(value ref.Val) (text string, other string) {
	switch value := value.(type) {
	case types.Null:
		return "null", ""
	case types.Bool:
		return strconv.FormatBool(bool(value)), ""
	case types.Int:
		return strconv.FormatInt(int64(value), 10), ""
	case types.Double:
		text := strconv.FormatFloat(float64(value), 'e', -1, 64)
		if !json.Valid([]byte(text)) {
			return "", "double"
		}
		return text, ""
	case types.String:
		quoted, err := json.Marshal(string(value))
		must(err)
		return string(quoted), ""
	case traits.Lister:
		text, separator := "[", ""
		for items := value.Iterator(); items.HasNext() == types.True; separator = "," {
			item, other := written(items.Next())
			if other != "" {
				return "", other
			}
			text += separator + item
		}
		return text + "]", ""
	case traits.Mapper:
		text, separator := "{", ""
		for keys := value.Iterator(); keys.HasNext() == types.True; separator = "," {
			key := keys.Next()
			name, is := key.(types.String)
			field, other := written(value.Get(key))
			if !is || other != "" {
				return "", "map of " + other
			}
			quoted, err := json.Marshal(string(name))
			must(err)
			text += separator + string(quoted) + ":" + field
		}
		return text + "}", ""
	default:
		return "", value.Type().TypeName()
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
