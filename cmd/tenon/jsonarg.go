package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// objectArg reads the argument that stands for a JSON object: the JSON itself, "-" for standard input,
// "@FILE" for a file. Empty means {}.
func objectArg(ctx context.Context, p *process, arg string) (json.RawMessage, error) {
	var (
		data  = []byte(arg)
		where = "the arguments are"
		err   error
	)
	switch {
	case arg == "-":
		where = "standard input is"
		if data, err = readInput(ctx, p.in, 0); err != nil {
			return nil, err
		}
	case strings.HasPrefix(arg, "@"):
		name := arg[1:]
		where = name + " is"
		if data, err = readFile(p.path(name)); err != nil {
			return nil, usagef("reading the arguments from %s: %v", name, pathCause(err))
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
		return nil, usagef(`%s not a JSON object: %v; write for instance '{"path": "notes.txt"}'%s`, where, err, meantFile(p, arg))
	}
	return data, nil
}

func checkObject(data []byte) error {
	var object map[string]json.RawMessage
	err := json.Unmarshal(data, &object)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return errors.New("it is " + withArticle(kind.Value))
	case err != nil:
		return jsonFault(data, err)
	case object == nil:
		return errors.New("it is null")
	}
	return nil
}

// jsonFault says what is wrong with JSON, and where.
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

// meantFile asks whether an argument that is no JSON is the name of a file; nothing if there is no such file.
func meantFile(p *process, arg string) string {
	if info, err := os.Stat(p.path(arg)); arg == "" || err != nil || info.IsDir() {
		return ""
	}
	return fmt.Sprintf(", or @%s if the file is meant", arg)
}

// withArticle is a JSON kind in a sentence: an array, a number.
func withArticle(kind string) string {
	if kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}

// path makes name relative to the directory that the command runs in.
func (p *process) path(name string) string {
	if p.dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.dir, name)
}

// pathCause is what is wrong with a file, without its name, which the message has already.
func pathCause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
