package mcphost

// Names of the protocol that test servers use.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerParam   = "Mcp-Param-"
	methodListen  = "subscriptions/listen"

	noiseLine = 300 // bytes that are kept of a line that is no message
	logBurst  = 10  // records with one message in a time
)
