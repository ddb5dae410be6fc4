package modeltest

// Offline returns the offline model.
func Offline() *Model { return NewModel(&Options{KeepRequests: -1}) }
