// Writes down what tools the MCP servers of servers.json list: one file a
// server, with the package, version and licence beside the tools.
//
//	gather DIR [server ...]
//
// Run it through the script "gather" beside it, which takes the network away.
// Each server is started in an empty folder with the environment that
// servers.json gives it, and asked for its tools, page by page; no tool is
// called. Equal versions give equal files: what a server says of the folder it
// runs in and of the time is replaced, and tools stand in the order of their
// names.
import { spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync, existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [out, ...only] = process.argv.slice(2);
const atOnce = 2;
const patience = Number(process.env.PATIENCE ?? 120) * 1000;
// Where the servers believe to run: what the files say instead of the folder.
const anywhere = "/srv/project";
// What the files say instead of a time that is about now: it is what the server
// read off the clock.
const anytime = "2026-01-01T00:00:00.000Z";
const about = 62 * 24 * 3600 * 1000;
// Licences that let tool lists be passed on. Where package.json names none, or only points to a file
// LICENSE, servers.json says what that file, or the repository's, does: the
// protocol's own servers are MIT with newer parts under Apache-2.0.
const free = new Set(["MIT", "Apache-2.0", "ISC", "BSD-2-Clause", "BSD-3-Clause", "MIT AND Apache-2.0"]);

const servers = JSON.parse(readFileSync(join(here, "servers.json"), "utf8"));
const queue = Object.keys(servers).sort().filter((s) => !only.length || only.includes(s));
const failed = [];
mkdirSync(out, { recursive: true });
await Promise.all(Array.from({ length: atOnce }, async () => {
	for (let name; (name = queue.shift()); ) {
		try {
			const tools = await gather(name, servers[name]);
			console.log(`${name}: ${tools} tools`);
		} catch (err) {
			failed.push(name);
			console.log(`${name}: ${err.message}`);
		}
	}
}));
if (failed.length) {
	console.log(`failed: ${failed.join(" ")}`);
	process.exitCode = 1;
}

async function gather(name, server) {
	const dir = join(here, "node_modules", server.package);
	const manifest = JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
	const licence = server.licence ?? manifest.license;
	if (!free.has(licence)) throw new Error(`licence ${licence}`);
	const home = mkdtempSync(join(tmpdir(), "corpus-"));
	try {
		const fill = (s) => s.replaceAll("{dir}", home);
		for (const [file, text] of Object.entries(server.files ?? {})) {
			mkdirSync(dirname(join(home, file)), { recursive: true });
			writeFileSync(join(home, file), typeof text === "string" ? fill(text) : JSON.stringify(text));
		}
		const env = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, HOME: home, LANG: "C.UTF-8", TZ: "UTC", NODE_ENV: "production" };
		for (const [key, value] of Object.entries(server.env ?? {})) env[key] = fill(value);
		const tools = await list([join(dir, program(manifest, server.bin)), ...(server.args ?? []).map(fill)], env, home);
		if (!tools.length) throw new Error("lists no tools");
		const lines = tools.map(keep).sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
			.map((t) => timeless(JSON.stringify(t).replaceAll(home, anywhere)));
		const head = JSON.stringify({ server: name, package: manifest.name, version: manifest.version, licence }).slice(0, -1);
		writeFileSync(join(out, `${name}.json`), `${head},"tools":[\n${lines.join(",\n")}\n]}\n`);
		return tools.length;
	} finally {
		try {
			rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
		} catch (err) {
			console.log(`${name}: ${home} is left: ${err.message}`); // a grandchild still writes; the tools are there all the same
		}
	}
}

// timeless replaces times about now.
function timeless(text) {
	return text.replace(/\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z/g, (s) => (Math.abs(Date.parse(s) - Date.now()) < about ? anytime : s));
}

// keep is what the corpus has of a tool.
function keep({ name, title, description, inputSchema, annotations }) {
	return { name, title, description, inputSchema, annotations };
}

// program is the file that a package runs by default.
function program(manifest, bin) {
	if (bin && existsSync(join(here, "node_modules", manifest.name, bin))) return bin;
	if (typeof manifest.bin === "string") return manifest.bin;
	const all = manifest.bin ?? {};
	return all[bin] ?? all[manifest.name.split("/").pop()] ?? Object.values(all)[0] ?? manifest.main;
}

// list starts a server and asks it for all its tools.
async function list(argv, env, cwd) {
	const child = spawn(process.execPath, argv, { env, cwd, detached: true, stdio: ["pipe", "pipe", "pipe"] });
	const waiting = new Map();
	let stderr = "", id = 0, gone = "";
	const give = (why) => {
		gone = why;
		for (const { reject } of waiting.values()) reject(new Error(`${why}${stderr ? ": " + stderr.trim().slice(-400) : ""}`));
		waiting.clear();
	};
	const timer = setTimeout(() => give("no answer in time"), patience);
	child.stderr.on("data", (d) => { stderr = (stderr + d).slice(-4000); });
	child.stdin.on("error", () => {});
	child.on("error", (err) => give(err.message));
	child.on("close", (code, signal) => give(`ended with ${signal ?? code}`));
	createInterface({ input: child.stdout }).on("line", (line) => {
		let m;
		try { m = JSON.parse(line); } catch { return; } // not every server keeps stdout clean
		if (m.id === undefined) return;
		if (m.method) { // we have none of what a server may ask for
			child.stdin.write(JSON.stringify({ jsonrpc: "2.0", id: m.id, error: { code: -32601, message: "method not found" } }) + "\n");
			return;
		}
		const call = waiting.get(m.id);
		if (!call) return;
		waiting.delete(m.id);
		if (m.error) call.reject(new Error(`${m.error.code} ${m.error.message}`)); else call.resolve(m.result);
	});
	const send = (m) => child.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...m }) + "\n");
	const call = (method, params) => new Promise((resolve, reject) => {
		if (gone) return reject(new Error(gone));
		waiting.set(++id, { resolve, reject });
		send({ id, method, params });
	});
	try {
		await call("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "corpus", version: "1.0.0" } });
		send({ method: "notifications/initialized" });
		const tools = [], seen = new Set();
		for (let cursor; ; ) {
			const page = await call("tools/list", cursor === undefined ? {} : { cursor });
			tools.push(...page.tools);
			cursor = page.nextCursor;
			if (cursor === undefined || seen.has(cursor)) return tools;
			seen.add(cursor);
		}
	} finally {
		clearTimeout(timer);
		try { process.kill(-child.pid, "SIGKILL"); } catch { /* gone already */ }
	}
}
