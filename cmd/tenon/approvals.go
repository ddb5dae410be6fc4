package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tenon-sdk/tenon/mcpconfig"
)

// approvals are the files of checkouts that the user trusts, each with exactly the contents that it had. They are
// kept in the user's configuration folder.
type approvals struct {
	file  string              // empty without a home directory
	err   error               // why the file is not used
	Files map[string]approval `json:"files"`
}

// An approval is the user's word about one file.
type approval struct {
	SHA256   string    `json:"sha256"` // of the contents, in hexadecimal
	Approved time.Time `json:"approved"`

	faulty json.RawMessage // what stands in the file if it is no approval
}

// UnmarshalJSON never fails: one approval that is damaged costs no other one.
func (a *approval) UnmarshalJSON(data []byte) error {
	type plain approval
	var p plain
	if json.Unmarshal(data, &p) != nil {
		p = plain{faulty: bytes.Clone(data)}
	}
	*a = approval(p)
	return nil
}

// MarshalJSON keeps what is damaged as it is.
func (a approval) MarshalJSON() ([]byte, error) {
	if a.faulty != nil {
		return a.faulty, nil
	}
	type plain approval
	return json.Marshal(plain(a))
}

// approvals reads what the user has approved. Without a file, or with one that cannot be read, nothing is approved;
// the error says why.
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
	data, err := readRegular(a.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, a)
	}
	if err != nil {
		a.Files = nil
		return fmt.Errorf("%s cannot be read (%w): no project is trusted; remove it, and approve anew with 'tenon trust'", a.file, pathCause(err))
	}
	return nil
}

// has reports whether a file was approved with these contents. The file is named by its place in the checkout, and not by
// where a symbolic link in its place leads: a checkout that links to a file of another one is not approved with it.
func (a *approvals) has(file string, contents []byte) bool {
	return a.Files[file].SHA256 == sha256Hex(contents)
}

// update changes the approvals in the file; what another process changes at the same time is kept.
func (a *approvals) update(change func(files map[string]approval)) error {
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
		if len(doc) > 0 {
			if err := json.Unmarshal(doc, &now); err != nil {
				return nil, fmt.Errorf("%s is damaged (%w): remove it, and approve anew", a.file, err)
			}
		}
		if now.Files == nil {
			now.Files = map[string]approval{}
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
	return a.update(func(all map[string]approval) {
		for file, contents := range files {
			all[file] = approval{SHA256: sha256Hex(contents), Approved: now}
		}
	})
}

func sha256Hex(contents []byte) string {
	sum := sha256.Sum256(contents)
	return hex.EncodeToString(sum[:])
}
