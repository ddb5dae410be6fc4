// Package soak holds the test of a service under load: two hundred users on one
// shared host, a strict model, and servers in this process, over stdio and over
// HTTP that speak three versions of the protocol. Faults are injected at random
// from a seed. The test counts what must never be, and prints a table:
//
//   - requests that the model refused,
//   - calls that ran twice, or not at all, without their user being told,
//   - users disturbed by a fault that was not theirs,
//   - conversations that stand still,
//   - goroutines, processes and files that stay behind,
//   - faults that the log says nothing about.
//
// A user is disturbed when a turn of it fails, or a call in a turn fails,
// although nobody interrupted or left that turn, and no fault of the call's
// server was at work during it. A fault is at work from its injection until its
// server has answered again and the next fault is injected. Faults of the model
// excuse nothing, since their requests are made again.
//
// The work is counted in rounds, so that a slow machine takes longer and nothing
// else. `make soak` goes on for ten minutes. The package has nothing but tests.
package soak
