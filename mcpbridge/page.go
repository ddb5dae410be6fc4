package mcpbridge

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
)

// page is the part of all that r asks for and the cursor of the next, "" at the
// end. A cursor names the last entry that was sent, so that a list that changes
// in between loses nothing; if that entry is gone its position counts.
func page[T any](b *Bridge, r *request, all []T, name func(T) string) (part []T, next string, err error) {
	cursor, fail := r.TextParam("cursor")
	if fail != nil {
		return nil, "", fail
	}
	from := 0
	if cursor != "" {
		last, position, ok := parseCursor(cursor)
		if !ok {
			return nil, "", rpcmsg.InvalidParams("params.cursor is none of this server's")
		}
		from = min(position, len(all))
		if i := slices.IndexFunc(all, func(t T) bool { return name(t) == last }); i >= 0 {
			from = i + 1
		}
	}
	part = all[from:]
	if size := b.opts.PageSize; size > 0 && len(part) > size {
		part = part[:size]
		next = makeCursor(name(part[size-1]), from+size)
	}
	return part, next, nil
}

func makeCursor(last string, position int) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(position) + " " + last))
}

func parseCursor(cursor string) (last string, position int, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return "", 0, false
	}
	digits, last, ok := strings.Cut(string(raw), " ")
	position, err = strconv.Atoi(digits)
	return last, position, ok && err == nil && position >= 0
}
