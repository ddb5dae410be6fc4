// The JSON-Schema-Test-Suite as data. No registry has it by itself; the CUE
// module ships a copy (MIT) with notes of its own beside the cases. Nothing is
// built from it and nothing of ours imports it: a module of its own keeps it
// out of what users of Tenon download. `go mod tidy` would empty this file.
module github.com/tenon-sdk/tenon/internal/schemasuite/suite

go 1.26.0

require cuelang.org/go v0.17.1
