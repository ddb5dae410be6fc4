// Package conformance runs the MCP conformance suite, a program of the protocol's
// makers, against what is built here. It is tests only.
package conformance
