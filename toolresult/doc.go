// Package toolresult turns the results of tools into what a model is sent: blocks of text and
// images within limits, with the rest in files that the model can read in parts.
//
// [Decode] reads the JSON of a result, [Convert] makes blocks of it, [Fit] brings them within the
// limits, and a [Store] keeps what is too large and reads and searches it.
package toolresult
