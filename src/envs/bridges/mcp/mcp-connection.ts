import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import type { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type * as McpTypes from "@modelcontextprotocol/sdk/types.js";
import { errorMessage, invalidArgument, invalidEnv, LlamaGymError } from "../../../core/errors.js";
import { excerpt } from "../../../core/format.js";
import { asJsonObject, isJsonObject, isNestedDeeper, type JsonObject } from "../../../core/json.js";
import { printWarning } from "../../../core/terminal-text.js";
import { bridgeError, formatJson } from "../channel.js";
import { MAX_MESSAGE_BYTES, MAX_MESSAGE_DEPTH, MAX_SCHEMA_LENGTH } from "../limits.js";
import { loadMcpSdk } from "./load-mcp-sdk.js";
import * as limits from "./mcp-limits.js";

const MAX_STDERR_IN_ERROR = 1200;
const END_SESSION_TIMEOUT_MS = 2000;

/** A tool of a server. */
export interface McpTool {
  readonly name: string;
  readonly description: string;
  /** JSON schema of its arguments. */
  readonly parameters: JsonObject;
}

/** Result of a tool call. */
export interface McpResult {
  /** The text parts, each on a line; other parts by their type. */
  readonly text: string;
  readonly isError: boolean;
  readonly structuredContent: JsonObject | undefined;
}

/** A server: a command with its arguments, or a URL. */
export type McpTarget =
  | {
      readonly command: string;
      readonly args: readonly string[];
      readonly environment: Readonly<Record<string, string>>;
    }
  | { readonly url: URL; readonly headers: Readonly<Record<string, string>> };

export interface McpConnectOptions {
  readonly name: string;
  readonly target: McpTarget;
  /** Limit of a call in milliseconds. */
  readonly timeout: number;
  /** Limit of the start in milliseconds. */
  readonly startTimeout: number;
}

/**
 * Splits a command line into words; quotes keep spaces. @throws INVALID_ARGUMENT for an open quote,
 * or without a word.
 */
export function splitCommand(line: string): string[] {
  const words = Array.from(line.matchAll(/"[^"]*"|'[^']*'|[^\s"']+/g), ([word]) => word.replaceAll(/^["']|["']$/g, ""));
  const quotes = line.replaceAll(/"[^"]*"|'[^']*'/g, "");
  if (words.length > 0 && !/["']/.test(quotes)) return words;
  throw invalidArgument(
    `"mcp:${line}" names no MCP server. Write mcp: and a command, such as "mcp:node server.js", or mcp:http://HOST:PORT/mcp.`,
  );
}

/**
 * A connection to an MCP server with its list of tools. Everything that a server sends is checked.
 */
export class McpConnection {
  tools: readonly McpTool[] = [];
  private problem: string | undefined;
  private invalidMessages = 0;
  private stderr = "";
  private areToolsStale = true;

  private constructor(
    private readonly options: McpConnectOptions,
    private readonly client: Client,
    private readonly transport: StdioClientTransport | StreamableHTTPClientTransport,
    private readonly types: typeof McpTypes,
  ) {
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has no addEventListener
    client.onclose = () => (this.problem ??= "ended the connection.");
    // oxlint-disable-next-line unicorn/prefer-add-event-listener
    client.onerror = (error) => {
      if (++this.invalidMessages > limits.MAX_INVALID_MESSAGES) void this.fail("sent too many invalid messages.");
      else this.stderr = (this.stderr + `\n${excerpt(errorMessage(error))}`).slice(-MAX_STDERR_IN_ERROR);
    };
    client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => void (this.areToolsStale = true));
  }

  /**
   * Starts or reaches a server and lists its tools. @throws ENV_FAILED, ENV_INVALID for invalid
   * tools, INVALID_STATE without the SDK.
   */
  static async connect(options: McpConnectOptions): Promise<McpConnection> {
    const { name, startTimeout: timeout } = options;
    const [{ Client }, types] = await Promise.all([loadMcpSdk("client/index.js"), loadMcpSdk("types.js")]);
    const { target } = options;
    const transport = await ("url" in target ? createHttpTransport(target) : createProcessTransport(target, name));
    const connection = new McpConnection(options, new Client({ name: "llamagym", version: "1" }), transport, types);
    if ("stderr" in transport)
      transport.stderr?.on("data", (data: Buffer) => {
        connection.stderr = (connection.stderr + data.toString("utf8")).slice(-MAX_STDERR_IN_ERROR);
      });
    try {
      await connection.client.connect(transport, { timeout, maxTotalTimeout: timeout });
      await connection.listTools();
      return connection;
    } catch (error) {
      const failure = error instanceof LlamaGymError ? error : connection.failure("could not be started", error);
      await connection.close();
      throw failure;
    }
  }

  get isClosed(): boolean {
    return this.problem !== undefined;
  }

  /** Lists the tools again if the server announced a change. @throws ENV_FAILED, ENV_INVALID */
  async refreshTools(): Promise<void> {
    if (this.areToolsStale) await this.listTools();
  }

  /**
   * Calls a tool; a refusal by the server is also a result.
   * @throws ENV_FAILED when the server ends, does not answer in time or answers with something
   * else; the connection is then closed.
   */
  async call(name: string, args: JsonObject): Promise<McpResult> {
    const { McpError, ErrorCode, CallToolResultSchema } = this.types;
    try {
      const params = { name, arguments: args };
      const result = await this.request({ method: "tools/call", params }, CallToolResultSchema, this.options.timeout);
      return readResult(result);
    } catch (error) {
      const isLost = [ErrorCode.RequestTimeout, ErrorCode.ConnectionClosed].includes((error as { code: number }).code);
      if (error instanceof McpError && !isLost && !this.isClosed)
        return { text: excerpt(error.message, 1000), isError: true, structuredContent: undefined };
      const failure = this.failure(`failed in the tool ${name}`, error);
      this.problem ??= failure.message;
      void this.close();
      throw failure;
    }
  }

  async close(): Promise<void> {
    this.problem ??= "was closed.";
    if ("terminateSession" in this.transport) {
      const end = this.transport.terminateSession().catch(() => {});
      await Promise.race([end, new Promise((resolve) => setTimeout(resolve, END_SESSION_TIMEOUT_MS).unref())]);
    }
    await this.client.close().catch(() => {});
  }

  private async listTools(): Promise<void> {
    const tools: McpTool[] = [];
    const problems: string[] = [];
    let numListed = 0;
    let cursor: string | undefined;
    this.areToolsStale = false;
    for (let page = 0; page === 0 || cursor !== undefined; page++) {
      if (page === limits.MAX_TOOL_PAGES) throw this.invalid(`lists its tools on more than ${page} pages.`);
      const params = cursor === undefined ? {} : { cursor };
      // The SDK's schema of a list refuses all tools for a fault of one.
      const schema = this.types.ResultSchema;
      const list = await this.request({ method: "tools/list", params }, schema, this.options.startTimeout);
      if (!Array.isArray(list.tools)) throw this.invalid("answers tools/list without a list of tools.");
      numListed += list.tools.length;
      if (numListed > limits.MAX_TOOLS) throw this.invalid(`has more than ${limits.MAX_TOOLS} tools.`);
      for (const json of list.tools as readonly unknown[]) {
        const tool = readTool(json);
        if (typeof tool === "string") problems.push(tool);
        else if (tools.some(({ name }) => name === tool.name))
          problems.push(`${JSON.stringify(excerpt(tool.name, 60))} is the name of an earlier tool.`);
        else tools.push(tool);
      }
      cursor = typeof list.nextCursor === "string" ? list.nextCursor : undefined;
    }
    if (problems.length > 0 && tools.length === 0) throw this.invalid(`has no usable tool: ${problems[0]}`);
    for (const problem of problems) printWarning(`${this.options.name} has a tool that is left out: ${problem}`);
    const { length } = JSON.stringify(tools.map(({ parameters }) => parameters));
    if (length > MAX_SCHEMA_LENGTH)
      throw this.invalid(`has schemas of ${length} characters, at most ${MAX_SCHEMA_LENGTH} are allowed.`);
    this.tools = tools;
  }

  private request<Schema extends Parameters<Client["request"]>[1]>(
    request: Parameters<Client["request"]>[0],
    schema: Schema,
    timeout: number,
  ) {
    return this.client.request(request, schema, { timeout, maxTotalTimeout: timeout });
  }

  private async fail(problem: string): Promise<void> {
    this.problem ??= problem;
    await this.close();
  }

  private invalid(problem: string): LlamaGymError {
    return invalidEnv(`${this.options.name} ${problem}`);
  }

  private failure(problem: string, cause: unknown): LlamaGymError {
    const { stderr } = this;
    const details = stderr.trim() === "" ? "" : ` The end of its output: ${stderr.trim()}`;
    return bridgeError(this.options.name, `${problem}: ${excerpt(errorMessage(cause), 500)}.${details}`, cause);
  }
}

/** Reads a tool of a list; returns what is wrong with one that cannot be called. */
function readTool(json: unknown): McpTool | string {
  const { name, description, inputSchema = { type: "object" } } = asJsonObject(json) ?? {};
  if (typeof name !== "string") return `its name is ${formatJson(name, 60)}, expected text.`;
  const shown = JSON.stringify(excerpt(name, 60));
  if (name === "" || name.length > limits.MAX_TOOL_NAME_LENGTH)
    return `the name ${shown} has ${name.length} characters, 1 to ${limits.MAX_TOOL_NAME_LENGTH} are allowed.`;
  if (!isJsonObject(inputSchema))
    return `the inputSchema of ${shown} is ${formatJson(inputSchema, 60)}, expected an object.`;
  if (isNestedDeeper(inputSchema, MAX_MESSAGE_DEPTH))
    return `the inputSchema of ${shown} has more than ${MAX_MESSAGE_DEPTH} levels.`;
  const { $schema: _dialect, ...parameters } = inputSchema;
  return {
    name,
    description: excerpt(typeof description === "string" ? description : "", limits.MAX_DESCRIPTION_LENGTH),
    parameters: { type: "object", properties: {}, ...parameters },
  };
}

/** Processes that have not ended, which this process kills when it exits. */
const processIds = new Set<number>();

function killProcesses(): void {
  for (const id of processIds) {
    try {
      process.kill(id, "SIGKILL");
    } catch {
      // It has ended.
    }
  }
}

async function createProcessTransport(
  { command, args, environment }: Extract<McpTarget, { command: string }>,
  name: string,
): Promise<StdioClientTransport> {
  const { StdioClientTransport } = await loadMcpSdk("client/stdio.js");
  // The process inherits PATH, HOME and the like only: other variables may be secrets.
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    env: { ...environment },
    stderr: "pipe",
    maxBufferSize: MAX_MESSAGE_BYTES,
  });
  const start = transport.start.bind(transport);
  transport.start = async () => {
    await start().catch((error: unknown) => {
      throw bridgeError(name, `could not be started by "${command}": ${errorMessage(error)}.`, error);
    });
    const { pid } = transport;
    if (pid === null) return;
    if (processIds.size === 0) process.on("exit", killProcesses);
    processIds.add(pid);
    const { onclose } = transport;
    // oxlint-disable-next-line unicorn/prefer-add-event-listener
    transport.onclose = () => {
      processIds.delete(pid);
      if (processIds.size === 0) process.off("exit", killProcesses);
      onclose?.();
    };
  };
  return transport;
}

async function createHttpTransport({
  url,
  headers,
}: Extract<McpTarget, { url: URL }>): Promise<StreamableHTTPClientTransport> {
  const { StreamableHTTPClientTransport } = await loadMcpSdk("client/streamableHttp.js");
  return new StreamableHTTPClientTransport(url, { requestInit: { headers }, fetch: fetchLimited });
}

/** Fetches without redirects; a response beyond the limit is an error. */
async function fetchLimited(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, { ...init, redirect: "error" });
  let size = 0;
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      size += chunk.length;
      if (size > MAX_MESSAGE_BYTES)
        controller.error(new Error(`the response has more than ${MAX_MESSAGE_BYTES} bytes`));
      else controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body?.pipeThrough(limit) ?? null, { status, statusText, headers });
}

function readResult(result: { content?: unknown; isError?: unknown; structuredContent?: unknown }): McpResult {
  const { isError, structuredContent } = result;
  const parts = (Array.isArray(result.content) ? result.content : []).slice(0, limits.MAX_RESULT_PARTS);
  const lines = parts.map((part: { type: string; text?: string }) => part.text ?? `[${part.type}]`);
  const structured = asJsonObject(structuredContent);
  const text = lines.length === 0 && structured !== undefined ? JSON.stringify(structured) : lines.join("\n");
  return { text, isError: isError === true, structuredContent: structured };
}
