import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LiveEvent } from "../../src/app/dashboard/api.js";
import { startDashboard, type Dashboard } from "../../src/app/dashboard/server.js";
import { startRun } from "../../src/app/runs/run.js";

type CallOptions = Omit<RequestInit, "headers"> & { readonly headers?: Readonly<Record<string, string>> };

/** A dashboard's server with its own folder of runs, and requests to it with its token. */
export class DashboardServer {
  readonly origin: string;
  private readonly token: string;

  private constructor(
    readonly root: string,
    readonly dashboard: Dashboard,
  ) {
    const { origin, searchParams } = new URL(dashboard.url);
    this.origin = origin;
    this.token = searchParams.get("token")!;
  }

  static async start(): Promise<DashboardServer> {
    const root = await mkdtemp(join(tmpdir(), "dashboard-"));
    return new DashboardServer(root, await startDashboard({ runs: root }));
  }

  async stop(): Promise<void> {
    await this.dashboard.close();
    await rm(this.root, { recursive: true });
  }

  /** Trains a run to its end. */
  async train(name: string, options: Parameters<typeof startRun>[0]): Promise<void> {
    const run = await startRun(options, join(this.root, name));
    try {
      await run.train();
      await run.saveModel();
    } finally {
      await run.close();
    }
  }

  /** Writes a run folder with the given settings and records, and returns its path. */
  async makeRun(name: string, config: object, records: readonly object[]): Promise<string> {
    const folder = join(this.root, name);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "config.json"), JSON.stringify(config));
    await writeFile(join(folder, "metrics.jsonl"), records.map((record) => `${JSON.stringify(record)}\n`).join(""));
    return folder;
  }

  async call(path: string, init: CallOptions = {}): Promise<Response> {
    return fetch(this.origin + path, { ...init, headers: { authorization: `Bearer ${this.token}`, ...init.headers } });
  }

  async get<Answer>(path: string): Promise<Answer> {
    const response = await this.call(path);
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Answer;
  }

  async post(path: string, body: unknown, method = "POST"): Promise<Response> {
    return this.call(path, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  }

  /** Returns the status of a request with headers that `fetch` does not allow. */
  async rawStatus(path: string, headers: Readonly<Record<string, string>>, method = "GET"): Promise<number> {
    return new Promise((resolve, reject) => {
      const allHeaders = { authorization: `Bearer ${this.token}`, ...headers };
      const sent = request(this.origin + path, { method, agent: false, headers: allHeaders }, (response) => {
        response.resume();
        resolve(response.statusCode!);
      });
      sent.on("error", reject).end();
    });
  }

  /** Opens a connection to /api/events, after its first event. */
  async openEvents(path: string, headers: Readonly<Record<string, string>> = {}): Promise<EventReader> {
    const { body } = await this.call(path, { headers });
    const events = new EventReader(body!.pipeThrough(new TextDecoderStream()).getReader());
    if ((await events.nextFields()).event !== "open") throw new Error("The first event is not open.");
    return events;
  }
}

/** Reads server-sent events. */
export class EventReader {
  id = "";
  private text = "";

  constructor(private readonly reader: ReadableStreamDefaultReader<string>) {}

  /** Returns the next event of a type. */
  async next<Type extends LiveEvent["type"]>(type: Type): Promise<Extract<LiveEvent, { type: Type }>> {
    for (;;) {
      const event = JSON.parse((await this.nextFields()).data) as LiveEvent;
      if (event.type === type) return event as Extract<LiveEvent, { type: Type }>;
    }
  }

  async close(): Promise<void> {
    await this.reader.cancel();
  }

  async nextFields(): Promise<Record<string, string>> {
    while (!this.text.includes("\n\n")) this.text += (await this.reader.read()).value ?? "";
    const end = this.text.indexOf("\n\n");
    const lines = this.text.slice(0, end).split("\n");
    this.text = this.text.slice(end + 2);
    const fields = Object.fromEntries(lines.map((line) => line.split(/: (.*)/s).slice(0, 2))) as Record<string, string>;
    this.id = fields.id ?? this.id;
    return fields;
  }
}
