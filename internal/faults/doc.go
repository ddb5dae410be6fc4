// Package faults holds the test of what bad connections do to a host: servers
// behind proxies that drop, delay, truncate, duplicate and reset, over stdio,
// SSE and streamable HTTP, in rounds that a seed repeats exactly. There is
// nothing in it but tests.
package faults
