package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tenon-sdk/tenon/internal/file"
	"github.com/tenon-sdk/tenon/mcpconfig"
)

// approvals are the files of checkouts that the user trusts, each with exactly the contents that it
// had. They are in a file of the user's configuration folder.
type approvals struct {
	file string // empty without a home directory
	err  error  // why the file is not used
	// Files are the approvals. One that is damaged stays as it is and does not affect the others.
	Files map[string]json.RawMessage `json:"files"`
}

// An approval is the user's decision to trust a file.
type approval struct {
	SHA256   string    `json:"sha256"` // of the contents, in hexadecimal
	Approved time.Time `json:"approved"`
}

// approvals reads what the user has approved. Without a file, or with one that cannot be read,
// nothing is approved; the error says why.
func (p *process) approvals() (*approvals, error) {
	a := &approvals{}
	dir := p.configDir()
	if dir == "" {
		return a, nil
	}
	a.file = filepath.Join(dir, "tenon", "trusted.json")
	a.err = a.read()
	return a, a.err
}

func (a *approvals) read() error {
	for _, path := range []string{filepath.Dir(a.file), a.file} {
		if err := private(path); err != nil {
			return err
		}
	}
	data, err := file.ReadRegular(a.file, maxInput)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, a)
	}
	if err != nil {
		a.Files = nil
		return fmt.Errorf("%s cannot be read (%w): no project is trusted; remove it, and approve anew with 'tenon trust'", a.file, file.Cause(err))
	}
	return nil
}

// private returns an error for a file or folder that others could have written, or a symbolic link
// of another user. A missing file has no error. Mode bits say nothing on Windows.
func private(path string) error {
	link, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w: no project is trusted", path, file.Cause(err))
	}
	linkOwner, _, known := file.Owner(link)
	owner, _, _ := file.Owner(info)
	switch me := os.Geteuid(); {
	case !known:
		return nil
	case linkOwner != me || owner != me:
		return fmt.Errorf("%s belongs to another user: no project is trusted; make it yours, or remove it", path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others can write to %s: no project is trusted; forbid it: chmod go-w %s", path, path)
	}
	return nil
}

// get returns the approval of a file. ok is false if it is damaged or missing.
func (a *approvals) get(file string) (approval approval, ok bool) {
	return approval, json.Unmarshal(a.Files[file], &approval) == nil
}

// has reports whether a file was approved with these contents. The path is the one in the checkout,
// not the target of a symbolic link: a checkout that links to a file of another one is not approved
// with it.
func (a *approvals) has(file string, contents []byte) bool {
	approved, ok := a.get(file)
	return ok && approved.SHA256 == sha256Hex(contents)
}

// update changes the approvals in the file, including those that another process added meanwhile.
func (a *approvals) update(change func(files map[string]json.RawMessage)) error {
	switch {
	case a.err != nil:
		return a.err
	case a.file == "":
		return errors.New("there is no folder to keep approvals in: set HOME or XDG_CONFIG_HOME to an absolute path")
	}
	if err := os.MkdirAll(filepath.Dir(a.file), 0o700); err != nil {
		return err
	}
	return mcpconfig.UpdateFile(a.file, 0o600, func(doc []byte) ([]byte, error) {
		now := approvals{}
		if err := json.Unmarshal(doc, &now); err != nil && len(doc) > 0 {
			return nil, fmt.Errorf("%s is damaged (%w): remove it, and approve anew", a.file, err)
		}
		if now.Files == nil {
			now.Files = map[string]json.RawMessage{}
		}
		change(now.Files)
		a.Files = now.Files
		data, err := json.MarshalIndent(now, "", "  ")
		return append(data, '\n'), err
	})
}

// approve adds files with the contents that were read.
func (a *approvals) approve(files map[string][]byte) error {
	now := time.Now().UTC().Truncate(time.Second)
	return a.update(func(all map[string]json.RawMessage) {
		for file, contents := range files {
			all[file], _ = json.Marshal(approval{sha256Hex(contents), now}) // cannot fail
		}
	})
}

func sha256Hex(contents []byte) string {
	sum := sha256.Sum256(contents)
	return hex.EncodeToString(sum[:])
}
