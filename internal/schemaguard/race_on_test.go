//go:build race

package schemaguard

// underRace makes the big tests smaller: the detector makes them ten times slower.
const underRace = true
