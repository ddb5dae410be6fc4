// Package differential holds the test that runs the same scripts on both engines and compares what
// the model is sent and what the program hears. Every difference is one that docs/engines.md lists.
// There is nothing in it but tests.
package differential
