package faults

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A fault is what happens to one line, event or exchange.
type fault int

const (
	pass fault = iota
	drop
	delay // let the next one go first
	truncate
	duplicate
	garble // noise that is no message, then the line
	reset  // the end of the connection
)

// odds draws faults; one seed gives one sequence. The first free draws pass,
// so that most of the connections get beyond their handshake.
type odds struct {
	rng  *rand.Rand
	free int
	rate float64
}

func newOdds(seed uint64) *odds {
	rng := rand.New(rand.NewPCG(seed, 0x7e40))
	if rng.IntN(8) == 0 {
		return &odds{rng: rng, rate: 0.3}
	}
	return &odds{rng: rng, free: 4 + rng.IntN(10), rate: 0.05 + 0.3*rng.Float64()}
}

func (o *odds) next() fault {
	if o.free > 0 {
		o.free--
		return pass
	}
	if o.rng.Float64() >= o.rate {
		return pass
	}
	return drop + fault(o.rng.IntN(int(reset)))
}

// echoServer is a server of the official library with one tool, which answers
// with the token that it is given.
func echoServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "echo", Version: "1"}, nil)
	type in struct {
		Token string `json:"token"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.Token}}}, nil, nil
		})
	return s
}

// stdioChild is the server with faults on both of its pipes.
func stdioChild() {
	fmt.Fprintln(os.Stderr, started)
	seed, _ := strconv.ParseUint(os.Getenv("FAULTS_SEED"), 10, 64)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() { mangle(os.Stdin, inW, newOdds(seed*2)); inW.Close() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		mangle(outR, os.Stdout, newOdds(seed*2+1))
		os.Exit(3) // a line that resets ends the process
	}()
	_ = echoServer().Run(context.Background(), &mcp.IOTransport{Reader: inR, Writer: outW})
	outW.Close()
	<-done
}

// mangle copies lines until a reset or the end of src.
func mangle(src io.Reader, dst io.Writer, o *odds) {
	r := bufio.NewReader(src)
	var held []byte
	put := func(b []byte) {
		_, _ = dst.Write(b)
		if held != nil {
			_, _ = dst.Write(held)
			held = nil
		}
	}
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		switch o.next() {
		case pass:
			put(line)
		case drop:
		case delay:
			if held == nil {
				held = bytes.Clone(line)
			} else {
				put(line)
			}
		case truncate:
			put(append(bytes.Clone(line[:len(line)/2]), '\n'))
		case duplicate:
			put(append(bytes.Clone(line), line...))
		case garble:
			put(append([]byte(fmt.Sprintf("warning: %d bytes follow\n", len(line))), line...))
		case reset:
			put(line[:len(line)/3])
			return
		}
	}
}
