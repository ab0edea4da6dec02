/**
 * A small MCP server over stdio, for `npm run example -- mcp-tools` and for any MCP client: it
 * switches the devices of a room on and off. It keeps no state, so all environments can share one
 * process.
 */
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const inputSchema = { device: z.enum(["lamp", "fan", "heater"]) };
const reply = (text: string) => ({ content: [{ type: "text" as const, text }] });

const server = new McpServer({ name: "room", version: "1.0.0" });
server.registerTool("turn_on", { description: "Switches a device on.", inputSchema }, ({ device }) =>
  reply(`The ${device} is on.`),
);
server.registerTool("turn_off", { description: "Switches a device off.", inputSchema }, ({ device }) =>
  reply(`The ${device} is off.`),
);
server.registerTool("list_devices", { description: "Names the devices." }, () => reply("lamp, fan, heater"));
await server.connect(new StdioServerTransport());
