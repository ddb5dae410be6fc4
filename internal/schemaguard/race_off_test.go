//go:build !race

package schemaguard

const underRace = false
