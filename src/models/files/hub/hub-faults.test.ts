import type { IncomingMessage, ServerResponse } from "node:http";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { blobName, FakeHub } from "../../../../test/support/fake-hub.js";
import { resolveHubConfig } from "./hub-config.js";
import { resolveFromHub } from "./resolve-model.js";

const commit = "0123456789abcdef0123456789abcdef01234567";
const weights = Buffer.from(Array.from({ length: 200_000 }, (_, i) => i % 251));
const files = { "config.json": "{}", "model.safetensors": weights };

let hub: FakeHub;
let cacheDir = "";
beforeEach(async () => {
  hub = await FakeHub.start({ "someone/tiny": { commit, files } });
  cacheDir = await mkdtemp(join(tmpdir(), "hub-"));
});
afterEach(async () => {
  await hub.stop();
  await rm(cacheDir, { recursive: true });
});

/**
 * Resolves the model from the hub with the settings of an environment with HF_ENDPOINT, and short
 * retry delays.
 */
async function resolve(retryDelayMs = 1): Promise<unknown> {
  const environment = { HF_ENDPOINT: hub.endpoint, HF_HUB_DOWNLOAD_TIMEOUT: "0.2", HF_HUB_ETAG_TIMEOUT: "1" };
  const config = await resolveHubConfig({ cacheDir, token: false }, environment);
  return resolveFromHub("someone/tiny", {}, { ...config, retryDelayMs });
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Sends the headers and then `chunk` until the client closes the connection. */
const sendForever =
  (chunk: string | Uint8Array, headers: Record<string, string> = {}): Answer =>
  (_, response) => {
    response.writeHead(200, headers);
    const send = (): void => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on("drain", send);
    send();
  };

const send = (response: ServerResponse, type: string, body: Uint8Array): void => {
  response.writeHead(200, { "Content-Type": type, "Content-Length": body.length }).end(body);
};
const html: Answer = (_, response) => send(response, "text/html", Buffer.from("<html>Please log in</html>"));
const json = (value: unknown): Answer => {
  return (_, response) => response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value));
};
const busy = (retryAfter: string): Answer => {
  return (_, response) => response.writeHead(429, { "Retry-After": retryAfter }).end();
};

/** A listing whose every page links to itself as the next one. */
const endlessPages: Answer = (request, response) => {
  response.setHeader("Link", `<${hub.endpoint}${request.url}>; rel="next"`);
  response.end(JSON.stringify([{ type: "directory", path: "x", size: 0, oid: "a".repeat(40) }]));
};

let attempt = 0;
/**
 * Sends one more byte than the time before, whatever range was requested, and drops the connection.
 */
const dropAfterSlowProgress: Answer = (_, response) => {
  attempt += 1;
  response.writeHead(200).write(weights.subarray(0, attempt), () => setTimeout(() => response.destroy(), 5));
};

const storage = /storage/u;
const tree = /tree/u;

describe("a hub with a fault", () => {
  it.each<[string, RegExp, Answer, string, RegExp, number]>([
    // name, path, answer, error code, message, requests for the faulty path
    [
      "a short file",
      storage,
      (_, response) => send(response, "application/octet-stream", weights.subarray(9)),
      "HUB_UNREACHABLE",
      /sent 199991 bytes \(application\/octet-stream\), but the announced size is 200000/u,
      1,
    ],
    [
      "a short file without a length",
      storage,
      (_, response) => {
        response.writeHead(200).write(weights.subarray(0, 5000));
        response.end();
      },
      "HUB_UNREACHABLE",
      /ended after 5000 of 200000 bytes/u,
      6,
    ],
    ["a web page for a file", storage, html, "HUB_UNREACHABLE", /sent \d+ bytes \(text\/html\)/u, 1],
    [
      "other bytes of the same length",
      storage,
      (_, response) => send(response, "text/plain", Buffer.alloc(weights.length)),
      "FILE_CORRUPT",
      new RegExp(`expected ${blobName(weights)}, got [0-9a-f]{64} \\(text/plain\\)`, "u"),
      1,
    ],
    ["connections dropped at once", storage, (request) => request.socket.destroy(), "HUB_UNREACHABLE", /fetched/u, 6],
    ["connections that make little progress", storage, dropAfterSlowProgress, "HUB_UNREACHABLE", /interrupted/u, 6],
    [
      "headers without a body",
      storage,
      (_, r) => r.writeHead(200).flushHeaders(),
      "HUB_UNREACHABLE",
      /no data for/u,
      6,
    ],
    [
      "an endless file",
      storage,
      sendForever(weights),
      "HUB_UNREACHABLE",
      /sent more bytes \(no content type\), but the announced size is 200000/u,
      1,
    ],
    [
      "an endless chain of redirects",
      storage,
      (request, response) => response.writeHead(302, { Location: request.url }).end(),
      "HUB_UNREACHABLE",
      /redirect/u,
      6 * 20,
    ],
    ["a Retry-After of days", tree, busy("259200"), "HUB_UNREACHABLE", /429 and asks to retry after 259200 s/u, 1],
    ["a Retry-After beyond numbers", tree, busy("9".repeat(400)), "HUB_UNREACHABLE", /retry after Infinity s/u, 1],
    ["a Retry-After in 2999", tree, busy("Thu, 01 Jan 2999 00:00:00 GMT"), "HUB_UNREACHABLE", /asks to retry/u, 1],
    ["a Retry-After that is invalid", tree, busy("soon"), "HUB_UNREACHABLE", /the hub answered 429/u, 3],
    ["a web page for the listing", tree, html, "HUB_UNREACHABLE", /web page \(text\/html\) instead of JSON/u, 1],
    ["endless pages", tree, endlessPages, "HUB_UNREACHABLE", /more than 100 pages/u, 100],
    [
      "an endless listing",
      tree,
      sendForever(`[${" ".repeat(2 ** 20)}`, { "Content-Type": "application/json" }),
      "HUB_UNREACHABLE",
      /longer than 67108864 bytes|no complete response/u,
      6,
    ],
    [
      "a listing of numbers as paths",
      tree,
      json([{ type: "file", path: 7, size: 1, oid: "a".repeat(40) }]),
      "HUB_UNREACHABLE",
      /unsafe or invalid path/u,
      1,
    ],
    [
      "a listing of negative sizes",
      tree,
      json([{ type: "file", path: "config.json", size: -1, oid: [[[]]] }]),
      "HUB_UNREACHABLE",
      /unsafe or invalid size, hash/u,
      1,
    ],
    ["a listing that is no list", tree, json({ length: 3 }), "HUB_UNREACHABLE", /its response is invalid/u, 1],
    ["a commit that is a list", /revision/u, json({ sha: ["x"] }), "HUB_UNREACHABLE", /names no commit/u, 1],
  ])("ends with one error after a bounded number of requests: %s", async (_, path, answer, code, message, requests) => {
    attempt = 0;
    hub.faults.push({ path, times: Infinity, answer });
    await expect(resolve()).rejects.toMatchObject({ code, message: expect.stringMatching(message) as string });
    const faulty = hub.requests.filter(({ server, path: requested }) =>
      path === storage ? server === "storage" : path.test(requested),
    );
    expect(faulty.length).toBeGreaterThan(0);
    expect(faulty.length).toBeLessThanOrEqual(requests);
    const names = await readdir(cacheDir, { recursive: true });
    expect(names.filter((name) => name.endsWith(".llamagym"))).toEqual([]);
    expect(names.filter((name) => name.endsWith(blobName(weights)))).toEqual([]);
    for (const name of names.filter((name) => name.endsWith(".incomplete")))
      expect((await stat(join(cacheDir, name))).size).toBeLessThanOrEqual(weights.length);
    hub.faults.length = 0;
    await expect(resolve()).resolves.toMatchObject({ kind: "folder" });
  });

  it("waits twice as long before each retry", async () => {
    hub.faults.push({ path: storage, times: Infinity, status: 503, answer: (request) => request.socket.destroy() });
    const start = performance.now();
    await expect(resolve(20)).rejects.toMatchObject({ code: "HUB_UNREACHABLE" });
    expect(performance.now() - start).toBeGreaterThanOrEqual(20 * (1 + 2 + 4 + 8 + 16) - 5);
  });

  it("that drops each connection after much progress is resumed to the end", async () => {
    const large = Buffer.alloc(9 * 2 ** 20, 3);
    await hub.stop();
    hub = await FakeHub.start({ "someone/tiny": { commit, files: { ...files, "model.safetensors": large } } });
    hub.faults.push({ path: storage, times: Infinity, breakAfter: 1.1 * 2 ** 20 });
    await expect(resolve()).resolves.toMatchObject({ kind: "folder" });
    expect(hub.requests.filter(({ server }) => server === "storage").length).toBeGreaterThan(6);
  });
});
