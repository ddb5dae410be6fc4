// Package soak holds a test of a service under load. Two hundred users share one
// host, a model server that refuses what the real one refuses, and MCP servers in
// this process, over stdio and over HTTP that speak three versions of the protocol.
// Faults are injected in an order drawn from a seed, and each is checked to have
// had its effect. The test prints a table and fails if there are
//
//   - requests refused by the model server,
//   - calls run twice,
//   - calls answered but not run, or never answered,
//   - failed calls that ran, without a word that they may have run,
//   - users disturbed by another's fault,
//   - stuck conversations,
//   - faults without effect or recovery,
//   - faults without a log record that names the server,
//   - leaked goroutines, processes and files.
//
// A user is disturbed if a turn fails, or a call in it, although the user neither
// interrupted nor left the turn and the call's server had no fault during it. A
// fault lasts until its server answers again. Failures of the model server excuse
// nothing, because its requests are repeated.
//
// The shortest run is one round of every fault, so that a slow machine takes longer
// and nothing else. `make soak` runs for ten minutes.
package soak
