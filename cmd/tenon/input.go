package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenon-sdk/tenon/internal/file"
)

// maxInput bounds what is read of a file or of standard input, in bytes.
const maxInput = 64 << 20

// stdinWait is how long a run with a prompt on the command line waits for the first text on standard
// input. Programs often start others with an input that they neither write to nor close.
const stdinWait = 3 * time.Second

// readNamed reads a file that the user names, which may be a pipe or a device, until ctx ends.
func readNamed(ctx context.Context, name string) ([]byte, error) {
	return await(ctx, func() ([]byte, error) { return file.Read(name, maxInput) })
}

// readInput reads standard input to its end, or until ctx ends.
func readInput(ctx context.Context, r io.Reader) ([]byte, error) {
	return await(ctx, func() ([]byte, error) {
		data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
		if err == nil && len(data) > maxInput {
			err = fmt.Errorf("standard input: it has more than the %d bytes that are read", maxInput)
		}
		return data, err
	})
}

// errNoInput is the cause of a wait for standard input that was too long.
var errNoInput = errors.New("nothing came on standard input")

// readPiped is readInput for an input that may never come: errNoInput if nothing comes in time.
func readPiped(ctx context.Context, r io.Reader) ([]byte, error) {
	b := bufio.NewReader(r)
	bounded, cancel := context.WithTimeoutCause(ctx, stdinWait, errNoInput)
	defer cancel()
	if _, err := await(bounded, func() ([]byte, error) { return b.Peek(1) }); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return readInput(ctx, b)
}

// readPrompt joins the prompt of the argument and of standard input.
func readPrompt(ctx context.Context, p *process, args []string) (string, error) {
	if len(args) > 1 {
		return "", usagef("one PROMPT wanted, got %s; quote the prompt", count(len(args), "argument"))
	}
	prompt := strings.Join(args, "")
	var (
		text []byte
		err  error
	)
	switch _, interactive := terminal(p.in); {
	case prompt == "" && interactive:
		return "", usagef("no prompt given; try: tenon run \"What can you do?\"")
	case prompt == "" || prompt == "-":
		prompt = ""
		text, err = readInput(ctx, p.in)
	case piped(p.in):
		text, err = readPiped(ctx, p.in)
		if errors.Is(err, errNoInput) {
			fmt.Fprintf(p.err, "tenon: nothing came on standard input within %v; going on without it (</dev/null avoids the wait)\n", stdinWait)
			err = nil
		}
	}
	if err != nil {
		return "", err
	}
	prompt = strings.TrimSpace(prompt + "\n\n" + string(text))
	if !utf8.ValidString(prompt) {
		fmt.Fprintln(p.err, "tenon: the prompt is not valid UTF-8; what is not is replaced by \uFFFD")
		prompt = strings.ToValidUTF8(prompt, "\uFFFD")
	}
	if prompt == "" {
		return "", usagef("the prompt is empty; try: tenon run \"What can you do?\"")
	}
	return prompt, nil
}

// piped reports whether a reader is a file or a pipe. A terminal and the null device are neither.
func piped(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&os.ModeNamedPipe != 0)
}

// objectArg reads a JSON object: the argument itself, standard input for "-", or a file for "@FILE".
// Without text it is {}.
func objectArg(ctx context.Context, p *process, arg string) (json.RawMessage, error) {
	data, where := []byte(arg), "the arguments are"
	var err error
	if arg == "-" {
		where = "standard input is"
		if data, err = readInput(ctx, p.in); err != nil {
			return nil, err
		}
	} else if name, isFile := strings.CutPrefix(arg, "@"); isFile {
		where = name + " is"
		if data, err = readNamed(ctx, name); err != nil {
			return nil, usagef("reading the arguments from %s: %v", name, file.Cause(err))
		}
	}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	if len(data) == 0 {
		return json.RawMessage("{}"), nil
	}
	if !utf8.Valid(data) {
		return nil, usagef("%s not valid UTF-8", where)
	}
	if err := checkObject(data); err != nil {
		return nil, usagef(`%s not a JSON object: %v; write for instance '{"path": "notes.txt"}'`, where, err)
	}
	return data, nil
}

// An argument has the arguments of a call as the command line has them: a JSON object, or words.
type argument struct {
	json  json.RawMessage
	words []assignmentWord
}

// An assignmentWord is KEY=VALUE, or KEY:=JSON.
type assignmentWord struct {
	key, value string
	isJSON     bool
}

// argumentWords reads the words after the name of a tool.
func argumentWords(ctx context.Context, p *process, words []string) (*argument, error) {
	if len(words) == 0 || len(words) == 1 && !isAssignment(words[0]) {
		object, err := objectArg(ctx, p, strings.Join(words, ""))
		return &argument{json: object}, err
	}
	a := &argument{}
	for _, word := range words {
		var w assignmentWord
		w.key, w.value, _ = strings.Cut(word, "=")
		w.key, w.isJSON = strings.CutSuffix(w.key, ":")
		switch {
		case !utf8.ValidString(word):
			return nil, usagef("the arguments are not valid UTF-8")
		case !isAssignment(word):
			return nil, usagef("%.80q is no KEY=VALUE; give each argument so, or all of them as one JSON object", word)
		case w.isJSON && !json.Valid([]byte(w.value)):
			return nil, usagef("%s:= wants JSON; write %s=VALUE for a string", w.key, w.key)
		case slices.ContainsFunc(a.words, func(before assignmentWord) bool { return before.key == w.key }):
			return nil, usagef("%s is given twice; for a list write %s:='[…]'", w.key, w.key)
		}
		a.words = append(a.words, w)
	}
	return a, nil
}

// isAssignment reports whether a word is KEY=VALUE and not JSON, a file or standard input.
func isAssignment(word string) bool {
	at := strings.IndexByte(word, '=')
	return at > 0 && !strings.ContainsRune("{[@\"", rune(word[0]))
}

// object returns the arguments as a JSON object. The tool's schema tells which values are strings.
func (a *argument) object(schema json.RawMessage) json.RawMessage {
	if a.words == nil {
		return a.json
	}
	var known struct {
		Properties map[string]struct {
			Type any `json:"type"` // a string, or a list of them
		} `json:"properties"`
	}
	_ = json.Unmarshal(schema, &known) // a schema of another form says nothing about its properties
	object := map[string]json.RawMessage{}
	for _, w := range a.words {
		value := json.RawMessage(w.value)
		if isString := known.Properties[w.key].Type == "string"; !w.isJSON && (isString || !json.Valid(value)) {
			value, _ = json.Marshal(w.value) // a string cannot fail
		}
		object[w.key] = value
	}
	data, _ := json.Marshal(object) // all values are valid JSON
	return data
}

func checkObject(data []byte) error {
	var object map[string]json.RawMessage
	err := json.Unmarshal(data, &object)
	kind, wrongType := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case wrongType:
		return errors.New("it is " + withArticle(kind.Value))
	case err != nil:
		return jsonFault(data, err)
	case object == nil:
		return errors.New("it is null")
	}
	return nil
}

// jsonFault returns a syntax error with its place.
func jsonFault(data []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	at := int(syntax.Offset)
	if len(data) == 0 || strings.HasPrefix(syntax.Error(), "unexpected end") {
		return errors.New("it ends too soon: a bracket or a quotation mark is not closed")
	}
	rest := data[max(at-1, 0):]
	r, _ := utf8.DecodeRune(rest)
	return fmt.Errorf("%q at character %d has no place there", r, utf8.RuneCount(data[:len(data)-len(rest)])+1)
}
