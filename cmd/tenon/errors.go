package main

import (
	"errors"
	"fmt"
)

// A usageError says that the command line is wrong, in one line that names the remedy.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// errReported ends a command whose failure stands on an output already.
var errReported = errors.New("failed")
