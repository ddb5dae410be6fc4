package mcpbridge

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
)

// page returns the page of all that r asks for and the cursor of the next page, ""
// after the last. A cursor names the last entry of its page, so that a list that
// changes meanwhile loses nothing. If that entry is gone, its position applies. If
// listErr, the error of listing all, is not nil, page returns it.
func page[T any](b *Bridge, r *request, all []T, listErr error, name func(T) string) (part []T, next string, err error) {
	if listErr != nil {
		return nil, "", listErr
	}
	cursor, fail := r.TextParam("cursor")
	if fail != nil {
		return nil, "", fail
	}
	from := 0
	if cursor != "" {
		last, position, ok := parseCursor(cursor)
		if !ok {
			return nil, "", rpcmsg.InvalidParams("params.cursor is not a cursor of this server")
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
