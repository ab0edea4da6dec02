import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A repository of the fake hub. */
export interface FakeRepository {
  /**
   * Contents by path. Files of 1,000 bytes and more are kept as large files, on a separate storage
   * server.
   */
  readonly files: Readonly<Record<string, Uint8Array | string>>;
  readonly commit: string;
  /** Branches and tags; "main" is always there. */
  readonly revisions?: readonly string[];
  /** The token without which the repository does not show. */
  readonly token?: string;
  /** Whether its conditions have not been accepted. */
  readonly gated?: boolean;
}

/** Something that goes wrong with the requests whose path matches, so many times. */
export interface Fault {
  readonly path: RegExp;
  times: number;
  /** Answer with this status and these headers. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Break the connection after so many bytes of the body. */
  readonly breakAfter?: number;
  /** Send so many bytes of the body and then nothing any more. */
  readonly stallAfter?: number;
  /** Send all of the file although a part was asked for. */
  readonly ignoreRange?: boolean;
  /** Send other bytes than the file's. */
  readonly corrupt?: boolean;
  /** Send this as the whole answer. */
  readonly body?: string;
  /** Answer in any other way. */
  readonly answer?: (request: IncomingMessage, response: ServerResponse) => void;
}

/** A request that reached a server. */
export interface RecordedRequest {
  readonly server: "hub" | "storage";
  readonly path: string;
  readonly range: string | undefined;
  readonly authorization: string | undefined;
}

const LFS_THRESHOLD_BYTES = 1000;

function toBuffer(content: Uint8Array | string): Buffer {
  return Buffer.from(content);
}

function sha256(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Git's hash of a file. */
function gitHash(content: Buffer): string {
  return createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex");
}

/** The hash under which the cache keeps a file. */
export function blobName(content: Uint8Array | string): string {
  const bytes = toBuffer(content);
  return bytes.length >= LFS_THRESHOLD_BYTES ? sha256(bytes) : gitHash(bytes);
}

/** Two HTTP servers that answer as the Hugging Face hub and its storage do. */
export class FakeHub {
  readonly requests: RecordedRequest[] = [];
  readonly faults: Fault[] = [];
  /** The address to set as HF_ENDPOINT. */
  endpoint = "";
  private readonly hub: Server;
  private readonly storage: Server;

  private constructor(private readonly repositories: ReadonlyMap<string, FakeRepository>) {
    this.hub = createServer((request, response) => this.answerHub(request, response));
    this.storage = createServer((request, response) => this.answerStorage(request, response));
  }

  static async start(repositories: Readonly<Record<string, FakeRepository>>): Promise<FakeHub> {
    const fake = new FakeHub(new Map(Object.entries(repositories)));
    for (const server of [fake.hub, fake.storage]) {
      await new Promise<void>((done) => {
        server.listen(0, "127.0.0.1", done);
      });
    }
    fake.endpoint = `http://127.0.0.1:${(fake.hub.address() as AddressInfo).port}`;
    return fake;
  }

  async stop(): Promise<void> {
    for (const server of [this.hub, this.storage]) {
      server.closeAllConnections();
      await new Promise((done) => {
        server.close(done);
      });
    }
  }

  private get storageEndpoint(): string {
    return `http://127.0.0.1:${(this.storage.address() as AddressInfo).port}`;
  }

  /** The paths of the files whose content was asked for, in order. */
  get downloads(): string[] {
    return this.requests.flatMap(({ path }) => /\/resolve\/[^/]+\/(.*)$/u.exec(path)?.slice(1, 2) ?? []);
  }

  private recordRequest(server: "hub" | "storage", request: IncomingMessage): string {
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://fake").pathname);
    this.requests.push({ server, path, range: request.headers.range, authorization: request.headers.authorization });
    return path;
  }

  private takeFault(path: string): Fault | undefined {
    const fault = this.faults.find((candidate) => candidate.times > 0 && candidate.path.test(path));
    if (fault !== undefined) fault.times -= 1;
    return fault;
  }

  private answerHub(request: IncomingMessage, response: ServerResponse): void {
    const path = this.recordRequest("hub", request);
    const fault = this.takeFault(path);
    if (fault?.answer !== undefined) return fault.answer(request, response);
    if (fault?.status !== undefined || fault?.body !== undefined) {
      response
        .writeHead(fault.status ?? 200, { "Content-Type": "application/json", ...fault.headers })
        .end(fault.body ?? "{}");
      return;
    }
    if (fault?.stallAfter !== undefined && path.startsWith("/api/")) {
      response.writeHead(200, { "Content-Type": "application/json" }).write("[".padEnd(fault.stallAfter));
      return;
    }
    const api = /^\/api\/models\/(.+)\/(revision|tree)\/([^/]+)$/u.exec(path);
    const resolve = /^\/(.+)\/resolve\/([^/]+)\/(.+)$/u.exec(path);
    const [id, revision] = api === null ? [resolve?.[1], resolve?.[2]] : [api[1], api[3]];
    const repository = id === undefined ? undefined : this.repositories.get(id);
    const rejection = this.findRejection(request, repository, revision ?? "");
    if (repository === undefined || rejection !== undefined) {
      const [status, code] = rejection ?? [404, "RepoNotFound"];
      response
        .writeHead(status, { "X-Error-Code": code, "Content-Type": "application/json" })
        .end('{"error":"refused"}');
    } else if (api?.[2] === "revision") {
      sendJson(response, { _id: "1", id, sha: repository.commit, lastModified: "2024-01-01T00:00:00.000Z" });
    } else if (api !== null) {
      this.answerTree(request, response, repository);
    } else {
      this.answerFile(request, response, repository, resolve?.[3] ?? "", fault);
    }
  }

  private findRejection(
    request: IncomingMessage,
    repository: FakeRepository | undefined,
    revision: string,
  ): readonly [number, string] | undefined {
    const { authorization } = request.headers;
    const hidden = repository === undefined || (repository.token !== undefined && authorization === undefined);
    if (hidden) return authorization === undefined ? [401, "RepoNotFound"] : [404, "RepoNotFound"];
    if (repository.token !== undefined && authorization !== `Bearer ${repository.token}`) return [401, "InvalidToken"];
    if (repository.gated === true) return [403, "GatedRepo"];
    const known = ["main", "HEAD", repository.commit, ...(repository.revisions ?? [])];
    return known.includes(revision) ? undefined : [404, "RevisionNotFound"];
  }

  /** Two entries a page, to be followed by the Link header. */
  private answerTree(request: IncomingMessage, response: ServerResponse, { files }: FakeRepository): void {
    const url = new URL(request.url ?? "/", this.endpoint);
    const start = Number(url.searchParams.get("cursor") ?? 0);
    const entries = Object.entries(files).map(([path, content]) => {
      const bytes = toBuffer(content);
      const large = { lfs: { oid: sha256(bytes), size: bytes.length, pointerSize: 130 } };
      return {
        type: "file",
        oid: gitHash(bytes),
        size: bytes.length,
        path,
        ...(bytes.length >= LFS_THRESHOLD_BYTES ? large : {}),
      };
    });
    if (start + 2 < entries.length) {
      url.searchParams.set("cursor", String(start + 2));
      response.setHeader("Link", `<${url.href}>; rel="next"`);
    }
    sendJson(response, entries.slice(start, start + 2));
  }

  private answerFile(
    request: IncomingMessage,
    response: ServerResponse,
    { files }: FakeRepository,
    path: string,
    fault: Fault | undefined,
  ): void {
    if (!Object.hasOwn(files, path)) {
      response.writeHead(404, { "X-Error-Code": "EntryNotFound" }).end();
      return;
    }
    const bytes = toBuffer(files[path]);
    if (bytes.length < LFS_THRESHOLD_BYTES) sendRange(request, response, bytes, fault);
    else response.writeHead(302, { Location: `${this.storageEndpoint}/${sha256(bytes)}` }).end();
  }

  private answerStorage(request: IncomingMessage, response: ServerResponse): void {
    const path = this.recordRequest("storage", request);
    const contents = [...this.repositories.values()].flatMap(({ files }) => Object.values(files).map(toBuffer));
    const bytes = contents.find((content) => `/${sha256(content)}` === path);
    const fault = this.takeFault("/storage");
    if (fault?.answer !== undefined) fault.answer(request, response);
    else if (bytes === undefined) response.writeHead(404).end();
    else sendRange(request, response, bytes, fault);
  }
}

function sendJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value));
}

function sendRange(request: IncomingMessage, response: ServerResponse, whole: Buffer, fault: Fault | undefined): void {
  const range = fault?.ignoreRange === true ? null : /^bytes=(\d+)-$/u.exec(request.headers.range ?? "");
  const start = range === null ? 0 : Number(range[1]);
  if (start >= whole.length && start > 0) {
    response.writeHead(416).end();
    return;
  }
  const body = fault?.corrupt === true ? Buffer.alloc(whole.length - start, 7) : whole.subarray(start);
  const part = { "Content-Range": `bytes ${start}-${whole.length - 1}/${whole.length}` };
  response.writeHead(range === null ? 200 : 206, { "Content-Length": body.length, ...(range === null ? {} : part) });
  const end = fault?.breakAfter ?? fault?.stallAfter;
  if (end === undefined) response.end(body);
  else {
    response.write(body.subarray(0, end), () => {
      if (fault?.breakAfter !== undefined) setTimeout(() => response.destroy(), 20);
    });
  }
}
