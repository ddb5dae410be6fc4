// Package toolresult converts the results of tools to blocks of text and images within limits, and
// stores the rest in files that a model can read in parts.
//
// [Decode] decodes the JSON of a result, [Convert] makes blocks of it, [Fit] brings them within the
// limits, and a [Store] stores what is too large and reads and searches it.
package toolresult
