// An MCP server over stdio for tests: `node mcp-server.mjs [MODE]`. Some of its tools, and some
// modes, misbehave.
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const mode = process.argv[2];
const tool = (name, properties = {}) => ({
  name,
  description: `Runs ${name}.`,
  inputSchema: { type: "object", properties, required: Object.keys(properties) },
});
const integer = { type: "integer", minimum: 0, maximum: 99 };
const tools = [
  tool("add", { a: integer, b: integer }),
  tool("count"),
  tool("restart", { seed: { type: "integer" } }),
  ...["crash", "hang", "garbage", "invalid", "refuse", "long", "change", "environment", "pid"].map((name) =>
    tool(name),
  ),
];
if (mode === "many-tools") tools.push(...Array.from({ length: 200 }, (_, i) => tool(`tool${i}`)));
if (mode === "large-schema")
  tools.push(tool("large", { text: { enum: Array.from({ length: 20_000 }, (_, i) => `${i}`) } }));
if (mode === "deep-schema") {
  let schema = {};
  for (let i = 0; i < 100; i++) schema = { type: "array", items: schema };
  tools.push(tool("deep", { schema }));
}
if (mode === "malformed")
  tools.unshift(
    null,
    { name: 5, inputSchema: { type: "object" } },
    { name: "text", inputSchema: "none" },
    { name: "x".repeat(500), inputSchema: { type: "object" } },
    { name: "open", description: ["a list"], inputSchema: { properties: {} }, outputSchema: 3, annotations: "none" },
    { name: "bare" },
  );
if (mode === "only-malformed") tools.splice(0, tools.length, { name: "text", inputSchema: "none" });
if (mode === "unsupported")
  tools.push(
    tool("typo", { text: { type: "strng" } }),
    tool("nothing", { text: { type: "string", minLength: 3, maxLength: 2 } }),
    tool("open", { text: { type: "object", unevaluatedProperties: false } }),
  );
if (mode === "twins") tools.push(tool("add"));

let count = 0;
const text = (value) => ({ content: [{ type: "text", text: value }] });
const calls = {
  add: ({ a, b }) => text(String(a + b)),
  count: () => text(String(++count)),
  restart: ({ seed, start = 0 }) => {
    count = start;
    return text(`seed ${seed}`);
  },
  crash: () => process.exit(3),
  hang: () => new Promise(() => {}),
  garbage: () => {
    for (let i = 0; i < 200; i++) process.stdout.write("this is not JSON\n");
    return new Promise(() => {});
  },
  invalid: (_args, id) => {
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result: { content: "no list" } })}\n`);
    return new Promise(() => {});
  },
  pid: () => text(String(process.pid)),
  refuse: () => ({ isError: true, ...text("not today") }),
  long: () => text("x".repeat(10_000)),
  change: async () => {
    tools.push(tool("surprise"));
    await server.sendToolListChanged();
    return text("changed");
  },
  environment: () => text(Object.keys(process.env).join(" ")),
};

if (mode === "exit") {
  process.stderr.write("no database\n");
  process.exit(1);
}
if (mode === "stubborn") for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => {});
if (mode === "silent" || mode === "stubborn") setInterval(() => {}, 1000);

const server = new Server({ name: "test", version: "1" }, { capabilities: { tools: { listChanged: true } } });
server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
  if (mode === "endless-pages") return { tools: [], nextCursor: "more" };
  const start = Number(params?.cursor ?? 0);
  const end = start + 6;
  return mode === "pages" && end < tools.length
    ? { tools: tools.slice(start, end), nextCursor: String(end) }
    : { tools: tools.slice(start) };
});
server.setRequestHandler(CallToolRequestSchema, ({ params }, { requestId }) =>
  calls[params.name](params.arguments, requestId),
);
if (mode !== "silent") await server.connect(new StdioServerTransport());
