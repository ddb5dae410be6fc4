// Package benchmarks measures Tenon beside what a program would use in its place, and prints a table: work, ours,
// theirs, ratio. It is tests only; `make bench` runs it, and nothing in it fails because something is slow.
//
// Theirs is, for agents, the TypeScript SDK driving the Claude Code CLI on the same scripted model, and for the host,
// the bare official MCP library doing the same. The two sides are measured alternately in one run; the table shows
// medians with minimum and maximum, and the median of the rounds' ratios. Absolute figures are those of the machine and its mood:
// what counts is the ratio, and that of processor time before that of wall time.
//
// The peers run in a network of their own that reaches the scripted model and nothing else.
package benchmarks
