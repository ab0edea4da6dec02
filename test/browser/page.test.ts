import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as llamagym from "../../src/index.js";
import { launchBrowser, skipsBrowser } from "../support/browser.js";
import { whyNoGpu } from "../support/gpu.js";
import { writeRandomModel } from "../support/random-model.js";
import { PROMPT, trainInPage, type PageResult } from "./train-in-page.js";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".wasm": "application/wasm",
};
const reason = await whyNoGpu();

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
  let gpuBrowser: Browser | undefined;
  let server: Server;
  let inNode: PageResult;
  const errors: string[] = [];

  async function open(path: string, opener = browser): Promise<Page> {
    const page = await (await opener.newContext()).newPage();
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
    inNode = await trainInPage(llamagym, { threads: 1 });
  }, 240_000);

  afterAll(async () => {
    await browser?.close();
    await gpuBrowser?.close();
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
    expectSameRun(await call<PageResult>(page, "train", { threads: 2 }));
  });

  it.skipIf(reason !== undefined)(
    `trains on a GPU, and computes the same bytes as in Node.js${reason === undefined ? "" : ` (${reason})`}`,
    async () => {
      const model = await writeRandomModel({ config: { num_hidden_layers: 1 } });
      // Few kernels, as SwiftShader compiles a kernel for half a second.
      const peftConfig = { r: 4, targetModules: ["q_proj"] };
      const training = {
        env: "Bandit-v0",
        device: "webgpu",
        threads: 1,
        peftConfig,
        batchSize: 8,
        numPpoEpochs: 1,
      } as const;
      const expected = await trainInPage(llamagym, { ...training, model: model.folder });
      const names = await readdir(model.folder);
      const files = await Promise.all(names.map((name) => readFile(join(model.folder, name), "base64")));
      await model.remove();
      gpuBrowser = await launchBrowser({ hasWebgpu: true });
      const page = await open("/", gpuBrowser);
      await call(page, "write", Object.fromEntries(names.map((name, i) => [`/model/${name}`, files[i]])));
      expect(await call<PageResult>(page, "train", { ...training, model: "/model" })).toEqual(expected);
    },
  );

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
