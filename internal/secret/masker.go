// Package secret finds secrets in configurations and hides them in texts for people and models.
//
// A value is a secret because of its name or, failing that, because of its looks. In doubt it is
// one: hiding a word too many does less harm than showing a secret. But ordinary words, numbers,
// paths and addresses are none, since messages without them cannot be understood.
package secret

import (
	"slices"
	"sync"

	"github.com/tenon-sdk/tenon/internal/clip"
)

// Hidden replaces a secret in a text.
const Hidden = "***"

// maxLearned bounds the secrets that a Masker learns. It forgets the oldest beyond that.
const maxLearned = 64

// headSlack is how many bytes beyond the head of a text Head masks, so that the head does not end
// in a part of a secret.
const headSlack = 4 << 10

// A Masker hides secrets in texts: those that it was made with, and those learned since. It is safe
// for concurrent use.
type Masker struct {
	configured []string

	mu       sync.Mutex
	learned  []string  // the latest last
	replacer *replacer // of all secrets; nil after a new one
}

// NewMasker returns a Masker of secrets.
func NewMasker(secrets []string) *Masker { return &Masker{configured: secrets} }

// Learn adds secrets.
func (m *Masker) Learn(secrets []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range secrets {
		if i := slices.Index(m.learned, s); i >= 0 {
			m.learned = slices.Delete(m.learned, i, i+1)
		} else {
			m.replacer = nil
		}
		m.learned = append(m.learned, s)
	}
	m.learned = m.learned[max(0, len(m.learned)-maxLearned):]
}

// Hide replaces each secret in s, whole or in large parts, plain or encoded.
func (m *Masker) Hide(s string) string {
	m.mu.Lock()
	if m.replacer == nil {
		m.replacer = newReplacer(slices.Concat(m.configured, m.learned))
	}
	r := m.replacer
	m.mu.Unlock()
	return r.replace(s)
}

// HideAll returns the texts with their secrets replaced.
func (m *Masker) HideAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = m.Hide(s)
	}
	return out
}

// Head returns the beginning of a text, in about n bytes, with its secrets replaced.
func (m *Masker) Head(s []byte, n int) string {
	return clip.Text(m.Hide(string(s[:min(len(s), n+headSlack)])), n)
}
