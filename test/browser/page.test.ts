import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as llamagym from "../../src/index.js";
import { launchBrowser, skipsBrowser } from "../support/browser.js";
import { PROMPT, trainBlackjack, type PageResult } from "./train-in-page.js";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".wasm": "application/wasm",
};
/** Headers with which threads may share memory. */
const ISOLATION = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };

/** Serves a folder; paths under /isolated/ with the headers for threads. */
function serve(folder: string): Server {
  return createServer((request, response) => {
    const path = new URL(request.url!, "http://localhost").pathname;
    const isIsolated = path.startsWith("/isolated/");
    const name = path.replace(/^\/isolated/, "").replace(/\/$/, "/index.html");
    readFile(join(folder, name)).then(
      (body) => {
        const type = TYPES[extname(name)] ?? "application/octet-stream";
        response.writeHead(200, { "content-type": type, ...(isIsolated ? ISOLATION : {}) }).end(body);
      },
      () => response.writeHead(404).end(),
    );
  });
}

const call = <Result>(page: Page, name: string, argument?: unknown) =>
  page.evaluate(
    ([functionName, value]) =>
      (globalThis as unknown as Record<string, (value: unknown) => Promise<Result>>)[functionName as string](value),
    [name, argument],
  );

describe.skipIf(skipsBrowser)("llamagym in a page", { timeout: 240_000 }, () => {
  let folder: string;
  let browser: Browser;
  let server: Server;
  let inNode: PageResult;
  const errors: string[] = [];

  async function open(path: string): Promise<Page> {
    const page = await (await browser.newContext()).newPage();
    page.on("pageerror", (error) => void errors.push(error.message));
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) errors.push(message.text());
    });
    await page.goto(`http://localhost:${(server.address() as AddressInfo).port}${path}`);
    await page.waitForFunction("globalThis.train !== undefined");
    return page;
  }

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "page-"));
    const script = fileURLToPath(new URL("page.ts", import.meta.url));
    const icon = '<link rel="icon" href="data:," />';
    writeFileSync(join(folder, "index.html"), `${icon}<script type="module" src="${script}"></script>`);
    await build({
      root: folder,
      base: "./",
      configFile: false,
      logLevel: "error",
      worker: { format: "es" },
      server: { fs: { strict: false } },
      build: { outDir: "out", target: "esnext", chunkSizeWarningLimit: 20_000 },
    });
    server = serve(join(folder, "out")).listen(0);
    browser = await launchBrowser();
    inNode = await trainBlackjack(llamagym, { threads: 1 });
  }, 240_000);

  afterAll(async () => {
    await browser?.close();
    server?.close();
    if (folder !== undefined) rmSync(folder, { recursive: true });
  });

  function expectSameRun(result: PageResult): void {
    expect(result.rewards).toEqual(inNode.rewards);
    expect(result.completion).toBe(inNode.completion);
    result.losses.forEach((loss, i) => expect(loss).toBeCloseTo(inNode.losses[i], 5));
    result.logProbs.forEach((logProb, i) => expect(Math.abs(logProb - inNode.logProbs[i])).toBeLessThan(1e-4));
  }

  it("trains as in Node.js, with one thread where the page is not isolated, and keeps the run in the browser's storage", async () => {
    const page = await open("/");
    expect(await page.evaluate("crossOriginIsolated")).toBe(false);
    const { result, files } = await call<{ result: PageResult; files: string[] }>(page, "trainAndStore");
    expectSameRun(result);
    expect(files.some((path) => path.endsWith("/adapter_model.safetensors"))).toBe(true);
    await page.reload();
    await page.waitForFunction("globalThis.train !== undefined");
    expect(await call<string[]>(page, "readStored")).toEqual(files);
  });

  it("trains as in Node.js with two threads", async () => {
    const page = await open("/isolated/");
    expect(await page.evaluate("crossOriginIsolated")).toBe(true);
    expectSameRun(await call<PageResult>(page, "train", 2));
  });

  it.each([8, 4] as const)("completes with weights of %i bits as in Node.js", async (quantize) => {
    const model = await llamagym.AutoModelForCausalLM.fromPretrained("embedded", { quantize, threads: 1 });
    const { text, tokens } = await model.generate(PROMPT, { maxNewTokens: 8, temperature: 0, ignoreEos: true });
    await model.close();
    expect(await call(await open("/"), "complete", quantize)).toEqual({ text, tokens: [...tokens] });
  });

  it("says which environments need Node.js", async () => {
    const page = await open("/");
    await expect(call(page, "open", "python:CartPole-v1")).rejects.toThrow("needs Node.js");
  });

  it("prints no errors or warnings", () => {
    expect(errors).toEqual([]);
  });
});
