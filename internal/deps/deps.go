// Package deps holds the module requirements while the rooms are being built.
package deps
