package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// children are the ids of this process's children, as the kernel knows them: those of servers that are still
// being connected, or already being closed, as well. Where it does not tell, there are none.
func children() []int {
	files, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is good
	var pids []int
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has ended meanwhile
		}
		for _, field := range bytes.Fields(data) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
