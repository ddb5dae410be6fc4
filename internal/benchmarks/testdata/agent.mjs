// The program of ../agent for the TypeScript SDK: the same server, the same questions.
import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

const [claude, queries, delay] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];

function server() {
  const lookup = async () => {
    if (delay > 0) await new Promise((done) => setTimeout(done, delay));
    const out = { quantity: 7, shelf: "C3" };
    return { content: [{ type: "text", text: JSON.stringify(out) }], structuredContent: out };
  };
  const shape = { sku: z.string() };
  const other = async (args) => ({ content: [{ type: "text", text: args.sku }] });
  return createSdkMcpServer({
    name: "bench",
    version: "1.0.0",
    alwaysLoad: true, // else its tools have to be searched for
    tools: [
      tool("lookup", "Find an article on the shelves", shape, lookup, { annotations: { readOnlyHint: true } }),
      tool("order", "Another tool", shape, other),
      tool("count", "Another tool", shape, other),
    ],
  });
}

async function ask(prompt) {
  const options = {
    pathToClaudeCodeExecutable: claude,
    mcpServers: { bench: server() },
    allowedTools: ["mcp__bench__lookup", "mcp__bench__order", "mcp__bench__count"],
    // As lean as it can be: no built-in tools, no settings, no transcript.
    tools: [],
    settingSources: [],
    persistSession: false,
  };
  for await (const message of query({ prompt, options })) {
    if (message.type === "result" && message.is_error) throw new Error(JSON.stringify(message));
  }
}

await Promise.all(Array.from({ length: queries }, (_, i) => ask(`question ${i}`)));
