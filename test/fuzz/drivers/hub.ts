import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { AutoModelForCausalLM, type RandomStream } from "../../../src/index.js";
import type { Attempt, Driver } from "../driver.js";
import { readFixture } from "../fixtures.js";
import { mutateBytes, mutateJson } from "../mutate.js";

type Random = RandomStream;

const COMMIT = "0123456789abcdef0123456789abcdef01234567";
const FILES = ["config.json", "generation_config.json", "model.safetensors"];
/** A download of three files with its retries takes some dozens of requests. */
const MAX_REQUESTS = 200;
const LFS_THRESHOLD_BYTES = 1000;

const hash = (algorithm: string, bytes: Uint8Array, prefix = "") =>
  createHash(algorithm).update(prefix).update(bytes).digest("hex");

/** The hub's correct reply to a path. */
function reply(path: string): { type: string; body: Uint8Array } | undefined {
  const json = (value: unknown) => ({ type: "application/json", body: Buffer.from(JSON.stringify(value)) });
  if (path.includes("/revision/")) return json({ _id: "1", id: "fuzz/model", sha: COMMIT, lastModified: "2024-01-01" });
  if (path.includes("/tree/")) {
    const entries = FILES.map((name) => {
      const bytes = readFixture("models", "llama", name);
      const entry = {
        type: "file",
        path: name,
        size: bytes.length,
        oid: hash("sha1", bytes, `blob ${bytes.length}\0`),
      };
      const lfs = { oid: hash("sha256", bytes), size: bytes.length, pointerSize: 130 };
      return bytes.length < LFS_THRESHOLD_BYTES ? entry : { ...entry, lfs };
    });
    return json(entries);
  }
  const name = FILES.find((file) => path.endsWith(`/resolve/${COMMIT}/${file}`));
  return name === undefined
    ? undefined
    : { type: "application/octet-stream", body: readFixture("models", "llama", name) };
}

type Fault = (response: ServerResponse, body: Uint8Array, random: Random) => void;

const RETRY_AFTER = ["0", "1", "-1", "86400", "1e9", "999999999999999999999", "soon", "Fri, 31 Dec 9999 23:59:59 GMT"];
const json = { "content-type": "application/json" };

/** Writes pieces until the client closes the connection. */
function writeForever(response: ServerResponse, piece: string): void {
  const write = () => {
    while (!response.destroyed && response.write(piece));
  };
  response.on("drain", write);
  write();
}

const faults: Readonly<Record<string, Fault>> = {
  drop: (response) => response.destroy(),
  shorter: (response, body) => response.end(body.subarray(0, body.length >> 1)),
  longer: (response, body) => response.end(Buffer.concat([body, Buffer.alloc(1000)])),
  breakOff: (response, body) => {
    response.writeHead(200, { "content-length": body.length });
    response.write(body.subarray(0, body.length >> 1), () => setTimeout(() => response.destroy(), 5));
  },
  stall: (response, body) => void response.write(body.subarray(0, body.length >> 1)),
  stallBeforeHeaders: () => {},
  html: (response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>Please log in</html>"),
  empty: (response, _, random) => response.writeHead(random.choice([200, 204, 206, 304])).end(),
  status: (response, _, random) => {
    response.writeHead(random.choice([400, 401, 403, 404, 407, 416, 418, 451, 500, 502, 504]), json).end("{}");
  },
  retryLater: (response, _, random) => {
    response.writeHead(random.choice([429, 503]), { "retry-after": random.choice(RETRY_AFTER) }).end("later");
  },
  redirect: (response, _, random) => {
    const location = random.choice(["/loop", "http://127.0.0.1:1/", "file:///etc/passwd", "//", "http://[", ""]);
    response.writeHead(302, { location }).end();
  },
  corrupt: (response, body, random) => response.end(mutateBytes(body, body.length, random)),
  json: (response, body, random) => {
    const tree: unknown = body[0] === 0x7b || body[0] === 0x5b ? JSON.parse(Buffer.from(body).toString()) : [{}];
    response.writeHead(200, json).end(mutateJson(tree, random));
  },
  otherLength: (response, body, random) => {
    response.writeHead(200, { "content-length": random.choice([0, 1, 10 ** 12]) }).end(body);
  },
  otherRange: (response, body, random) => {
    const range = random.choice([
      "bytes 0-0/1",
      "bytes */*",
      "bytes 5-2/1",
      "nonsense",
      "bytes 0-99999999999/99999999999",
    ]);
    response.writeHead(206, { "content-range": range }).end(body);
  },
  badEncoding: (response, body) => response.writeHead(200, { "content-encoding": "gzip" }).end(body),
  endlessBody: (response) => writeForever(response, "[".repeat(65_536)),
  endlessFile: (response, body) => {
    response.writeHead(200, { "content-length": body.length * 1e9 });
    writeForever(response, "a".repeat(65_536));
  },
  endlessPages: (response, body) => {
    const link = `<http://${response.req.headers.host}${response.req.url?.split("?")[0]}?cursor=${Math.random()}>; rel="next"`;
    response.writeHead(200, { ...json, link }).end(body);
  },
};

/** A hub on loopback, one of whose replies is wrong for a while or for ever. */
class HostileHub {
  requests = 0;
  endpoint = "";
  private fault:
    | { path: string; times: number; send: (response: ServerResponse, body: Uint8Array) => void }
    | undefined;

  async start(): Promise<void> {
    const server = createServer((request, response) => this.answer(request, response));
    await new Promise<void>((done) => {
      server.listen(0, "127.0.0.1", done);
    });
    this.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  setFault(random: Random): void {
    const path = random.choice(["/revision/", "/tree/", "/resolve/", "safetensors", "/"]);
    const send = faults[random.choice(Object.keys(faults))];
    this.fault = {
      path,
      times: random.choice([1, 3, Infinity]),
      send: (response, body) => send(response, body, random),
    };
  }

  clearFault(): void {
    this.fault = undefined;
    this.requests = 0;
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    this.requests++;
    request.resume();
    response.on("error", () => {});
    const path = (request.url ?? "").split("?")[0];
    const right = reply(path);
    const { fault } = this;
    if (fault !== undefined && fault.times > 0 && path.includes(fault.path)) {
      fault.times--;
      fault.send(response, right?.body ?? Buffer.from("{}"));
    } else if (right === undefined) response.writeHead(404, { "x-error-code": "EntryNotFound" }).end();
    else sendRange(request, response, right.type, right.body);
  }
}

function sendRange(request: IncomingMessage, response: ServerResponse, type: string, body: Uint8Array): void {
  const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? -1);
  if (start >= body.length) response.writeHead(416).end();
  else if (start < 0) response.writeHead(200, { "content-type": type, "content-length": body.length }).end(body);
  else {
    const range = `bytes ${start}-${body.length - 1}/${body.length}`;
    response.writeHead(206, { "content-type": type, "content-range": range }).end(body.subarray(start));
  }
}

/**
 * Downloads from a hub that misbehaves; afterwards the same cache must serve a download from one
 * that behaves.
 */
export const hub: Driver = {
  timeLimitMs: 20_000,
  share: 0.02,
  async start(scratch): Promise<Attempt> {
    const server = new HostileHub();
    await server.start();
    Object.assign(process.env, {
      HF_ENDPOINT: server.endpoint,
      HF_HUB_ETAG_TIMEOUT: "1",
      HF_HUB_DOWNLOAD_TIMEOUT: "1",
    });
    let caches = 0;
    const download = async (cacheDir: string) => {
      const model = await AutoModelForCausalLM.fromPretrained("fuzz/model", { cacheDir, token: false, device: "cpu" });
      await model.close();
    };
    return async (random) => {
      const cacheDir = join(scratch, String(caches++));
      server.clearFault();
      server.setFault(random);
      const error = await download(cacheDir).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (server.requests > MAX_REQUESTS) throw new Error(`The hub received ${server.requests} requests.`);
      server.clearFault();
      await download(cacheDir).catch((reason: unknown) => {
        throw new Error(`The cache is unusable after ${String(error)}: ${String(reason)}`);
      });
      if (error !== undefined) throw error;
    };
  },
};
