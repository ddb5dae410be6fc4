package layout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// importGraph finds imports that the table of rooms does not have.
func importGraph(tr *tree) []finding {
	var found []finding
	for _, p := range tr.pkgs {
		row := rowOf(p.dir)
		if row == nil {
			found = append(found, finding{p.dir, 0, "no row in the table of rooms says what it may import"})
			continue
		}
		for _, f := range p.files {
			for _, spec := range f.Imports {
				dir, ours := ownImport(spec.Path.Value)
				if ours && dir != p.dir && !row.allows(dir, f.test) {
					found = append(found, tr.at(spec, "%s may not import %s", p.dir, dir))
				}
			}
		}
	}
	return found
}

// staleRows finds rows of the table that no package needs any more.
func staleRows(tr *tree) []finding {
	var found []finding
	for _, row := range rooms {
		used := slices.ContainsFunc(tr.pkgs, func(p *pkg) bool { return rowOf(p.dir) != nil && rowOf(p.dir).path == row.path })
		if !used && !row.planned {
			found = append(found, finding{row.path, 0, "the table of rooms has a row for it, and it does not exist"})
		}
	}
	return found
}

// rowOf returns the row for a folder: its own, or the nearest "/..." above.
func rowOf(dir string) *room {
	var best *room
	for i, row := range rooms {
		folder, below := strings.CutSuffix(row.path, "/...")
		if dir == row.path {
			return &rooms[i]
		}
		if below && within(dir, folder) && (best == nil || len(row.path) > len(best.path)) {
			best = &rooms[i]
		}
	}
	return best
}

// ownImport returns the folder of an import of ours.
func ownImport(quoted string) (dir string, ours bool) {
	path, err := strconv.Unquote(quoted)
	if err != nil {
		return "", false
	}
	if path == modulePath {
		return ".", true
	}
	return strings.CutPrefix(path, modulePath+"/")
}

func (r *room) allows(dir string, test bool) bool {
	if slices.Contains(testRooms, dir) {
		return test || slices.Contains(r.imports, dir) // a room of tests may build on another
	}
	if test && (slices.Contains(r.tests, dir) || slices.Contains(testHelpers, dir)) {
		return true
	}
	return slices.ContainsFunc(r.imports, func(allowed string) bool {
		switch allowed {
		case "any":
			return true
		case "public":
			return !within(dir, "internal") && !within(dir, "cmd") && !within(dir, "examples")
		}
		folder, below := strings.CutSuffix(allowed, "/...")
		return dir == allowed || below && within(dir, folder)
	})
}

// libraryWalls finds libraries of others outside of the rooms that need them.
func libraryWalls(tr *tree) []finding {
	var found []finding
	for _, p := range tr.pkgs {
		for _, f := range p.files {
			for _, spec := range f.Imports {
				path := strings.Trim(spec.Path.Value, `"`)
				for _, wall := range walls {
					inside := slices.ContainsFunc(wall.rooms, func(room string) bool { return within(p.dir, room) })
					if within(path, wall.module) && !inside {
						found = append(found, tr.at(spec, "%s may not import %s: %s; it belongs in %s", p.dir, path, wall.why, strings.Join(wall.rooms, ", ")))
					}
				}
			}
		}
	}
	return found
}

// packageNames finds names that say nothing.
func packageNames(tr *tree) []finding {
	var found []finding
	for _, p := range tr.pkgs {
		if slices.Contains(forbiddenNames, p.name) {
			found = append(found, finding{p.dir, 0, fmt.Sprintf("the package name %s says nothing about what it is for", p.name)})
		}
	}
	return found
}
