/**
 * A small MCP server over stdio, for `npm run example -- mcp-tools` and for any MCP client: a warehouse in which `locate` finds
 * the shelf of a product and `take` empties a shelf. It keeps no state, so all environments can share one process.
 */
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const ITEMS = ["apples", "books", "lamps"] as const;
const COLORS = ["red", "green"] as const;
const SHELVES = ["A", "B", "C"] as const;

const products = ITEMS.flatMap((item, i) =>
  COLORS.map((color, c) => ({ name: `${color} ${item}`, shelf: SHELVES[(i + (i + 1) * c) % SHELVES.length] })),
);
const reply = (text: string) => ({ content: [{ type: "text" as const, text }] });

const server = new McpServer({ name: "warehouse", version: "1.0.0" });
server.registerTool(
  "locate",
  { description: "Names the shelf of a product.", inputSchema: { color: z.enum(COLORS), item: z.enum(ITEMS) } },
  ({ color, item }) => {
    const name = `${color} ${item}`;
    return reply(`The ${name} are on shelf ${products.find((product) => product.name === name)?.shelf}.`);
  },
);
server.registerTool(
  "take",
  { description: "Takes everything from a shelf.", inputSchema: { shelf: z.enum(SHELVES) } },
  ({ shelf }) => {
    const names = products.flatMap((product) => (product.shelf === shelf ? [product.name] : []));
    return reply(`You took: ${names.join(", ")}.`);
  },
);
await server.connect(new StdioServerTransport());
