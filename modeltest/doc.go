// Package modeltest is the Messages API of a model that does what a script says.
//
//	model := modeltest.New(t,
//		modeltest.ToolUse("mcp__stock__lookup", `{"sku":"AB-00017"}`),
//		modeltest.Text("There are 7 left."),
//	)
//	// model is an http.RoundTripper, and an http.Handler: give it to whatever speaks the Messages API.
package modeltest
