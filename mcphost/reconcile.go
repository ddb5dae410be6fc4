package mcphost

import (
	"maps"
	"reflect"
	"slices"
	"unsafe"
)

// A plan is the difference between the running and the wanted servers. Its lists are sorted.
type plan struct{ add, remove, change []string }

// reconcile compares the running configurations with the wanted ones.
func reconcile(running, wanted map[string]ServerConfig) plan {
	var p plan
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		switch have, ok := running[name]; {
		case !ok:
			p.add = append(p.add, name)
		case !sameConfig(have, wanted[name]):
			p.change = append(p.change, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(running)) {
		if _, ok := wanted[name]; !ok {
			p.remove = append(p.remove, name)
		}
	}
	return p
}

// sameConfig reports whether two configurations result in the same connection.
func sameConfig(a, b ServerConfig) bool {
	switch a := a.(type) {
	case HTTP:
		b, ok := b.(HTTP)
		return ok && sameHTTP(a, b)
	case SSE:
		b, ok := b.(SSE)
		return ok && sameHTTP(HTTP(a), HTTP(b))
	case InProcessServer:
		b, ok := b.(InProcessServer)
		return ok && samePointer(a.Provider, b.Provider) && reflect.DeepEqual(a.Common, b.Common)
	case Custom:
		b, ok := b.(Custom)
		return ok && a.Key != "" && a.Key == b.Key && reflect.DeepEqual(a.Common, b.Common)
	}
	return reflect.DeepEqual(a, b)
}

func sameHTTP(a, b HTTP) bool {
	if !sameHeadersFunc(a, b) || a.HTTPClient != b.HTTPClient || !a.Auth.Same(b.Auth) {
		return false
	}
	// The other fields are data.
	a.HeadersFunc, b.HeadersFunc = nil, nil
	a.HTTPClient, b.HTTPClient = nil, nil
	a.Auth, b.Auth = nil, nil
	return reflect.DeepEqual(a, b)
}

// sameHeadersFunc reports whether two configurations compute the same headers: they have the same
// key or, without keys, the same function value.
func sameHeadersFunc(a, b HTTP) bool {
	switch {
	case a.HeadersFunc == nil || b.HeadersFunc == nil:
		return a.HeadersFunc == nil && b.HeadersFunc == nil
	case a.HeadersKey != "" || b.HeadersKey != "":
		return a.HeadersKey == b.HeadersKey
	}
	return sameFunc(a.HeadersFunc, b.HeadersFunc)
}

// sameFunc compares function values and not their code: two closures may have the same code and
// different variables.
func sameFunc(a, b HeadersFunc) bool {
	return *(*unsafe.Pointer)(unsafe.Pointer(&a)) == *(*unsafe.Pointer)(unsafe.Pointer(&b))
}

// samePointer compares providers without comparing what they point to.
func samePointer(a, b any) bool {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	if !va.IsValid() || !vb.IsValid() {
		return va.IsValid() == vb.IsValid()
	}
	return va.Type() == vb.Type() && va.Comparable() && va.Equal(vb)
}
