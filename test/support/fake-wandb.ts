import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

export interface FakeWandb {
  readonly url: string;
  /** Lines of history by their number, as the server has them. */
  readonly history: string[];
  /** The newest summary. */
  readonly summary: () => Record<string, unknown>;
  readonly config: () => Record<string, { value: unknown }>;
  readonly uploads: Map<string, string>;
  /** Sweeps of the runs by the runs' ids; the history belongs to one run. */
  readonly runs: Map<string, { readonly sweep?: unknown }>;
  /** Exit codes of the runs that have ended. */
  readonly exits: number[];
  /** The Authorization headers that came. */
  readonly authorizationHeaders: Set<string | undefined>;
  /** The next requests are answered with these statuses instead. */
  readonly failureStatuses: number[];
  readonly requests: string[];
  close(): Promise<void>;
}

interface StreamBody {
  readonly files?: Readonly<Record<string, { readonly offset: number; readonly content: readonly string[] }>>;
  readonly complete?: boolean;
  readonly exitcode?: number;
}

/**
 * A W&B server as far as a run needs one: it takes the requests that W&B's own client sends for a
 * run (seen with wandb 0.31) and keeps what they say.
 */
export async function startFakeWandb(): Promise<FakeWandb> {
  const state = {
    history: [] as string[],
    summary: undefined as string | undefined,
    config: "{}",
    uploads: new Map<string, string>(),
    runs: new Map<string, { readonly sweep?: unknown }>(),
    exits: [] as number[],
    authorizationHeaders: new Set<string | undefined>(),
    failureStatuses: [] as number[],
    requests: [] as string[],
  };
  const server = createServer((request, response) => {
    void handleRequest(request).then(({ status, body }) => {
      response.statusCode = status;
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(body));
    });
  });

  async function handleRequest(request: IncomingMessage): Promise<{ status: number; body: unknown }> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString("utf8");
    const url = request.url ?? "";
    state.requests.push(`${request.method} ${url}`);
    const failureStatus = state.failureStatuses.shift();
    if (failureStatus !== undefined) return { status: failureStatus, body: { error: "not now" } };
    if (url.startsWith("/upload/")) {
      state.uploads.set(decodeURIComponent(url.slice("/upload/".length)), text);
      return { status: 200, body: {} };
    }
    state.authorizationHeaders.add(request.headers.authorization);
    if (url === "/graphql") return { status: 200, body: handleGraphql(text) };
    if (/^\/files\/me\/[^/]+\/[^/]+\/file_stream$/.test(url)) return { status: 200, body: handleFileStream(text) };
    return { status: 404, body: {} };
  }

  function handleGraphql(text: string): unknown {
    const { query, variables } = JSON.parse(text) as { query: string; variables: Record<string, unknown> };
    if (query.includes("createRunFiles")) {
      const files = (variables.files as string[]).map((name) => ({ name, uploadUrl: `${address()}/upload/${name}` }));
      return { data: { createRunFiles: { uploadHeaders: ["x-kind: media"], files } } };
    }
    if (query.includes("RunResumeStatus")) {
      const bucket = state.runs.has(variables.name as string) ? { historyLineCount: state.history.length } : null;
      return { data: { model: { bucket } } };
    }
    if (!query.includes("upsertBucket")) return { errors: [{ message: "unknown query" }] };
    if (typeof variables.config === "string") state.config = variables.config;
    state.runs.set(variables.name as string, { sweep: variables.sweep ?? undefined });
    const bucket = {
      displayName: variables.displayName ?? "brave-sea-1",
      historyLineCount: state.history.length,
      summaryMetrics: state.summary ?? null,
      project: { name: variables.project, entity: { name: variables.entity ?? "me" } },
    };
    return { data: { upsertBucket: { bucket } } };
  }

  function handleFileStream(text: string): unknown {
    const { files, complete, exitcode } = JSON.parse(text) as StreamBody;
    const history = files?.["wandb-history.jsonl"];
    history?.content.forEach((line, index) => (state.history[history.offset + index] = line));
    state.summary = files?.["wandb-summary.json"]?.content.at(-1) ?? state.summary;
    if (complete === true) state.exits.push(exitcode ?? -1);
    return { exitcode: null, limits: {} };
  }

  const address = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: address(),
    ...state,
    summary: () => JSON.parse(state.summary ?? "{}") as Record<string, unknown>,
    config: () => JSON.parse(state.config) as Record<string, { value: unknown }>,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
