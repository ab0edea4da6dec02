import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { writeRandomModel } from "../../../test/support/random-model.js";
import { CausalLM } from "../causal-lm.js";
import { clearCachedWeights, listCachedWeights } from "./weight-cache.js";

/** More are killed with KILLS=50. */
const KILLS = Number(process.env.KILLS ?? 4);
const MODULE_URL = new URL("../../../dist/models/causal-lm.js", import.meta.url).href;

let model: Awaited<ReturnType<typeof writeRandomModel>>;
let folder: string;
let cache: string;
const warnings: string[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "llamagym-weight-cache-"));
  model = await writeRandomModel({ withTokenizer: false, config: { vocab_size: 140_000, hidden_size: 64 } });
});
afterAll(async () => {
  await model.remove();
  await rm(folder, { recursive: true });
});

let count = 0;
beforeEach(() => {
  cache = join(folder, `cache-${count++}`);
  vi.stubEnv("LLAMAGYM_CACHE", cache);
  warnings.length = 0;
  vi.spyOn(console, "warn").mockImplementation((message: string) => void warnings.push(message));
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const open = (quantize: 4 | 8 = 8) => CausalLM.open(model.folder, { device: "cpu", threads: 1, quantize });

const getFolder = async ({ weights, runtime }: CausalLM) =>
  (await weights.getSessionOptions({ weights: [] }, runtime)).folder ?? "in memory";

/** Opens the model, converts its weights and closes it. Returns the folder of the weights. */
async function convert(quantize?: 4 | 8): Promise<string> {
  const opened = await open(quantize);
  const path = await getFolder(opened);
  await opened.close();
  return path;
}

const weightsOf = (path: string) => join(path, "weights.bin");

describe("the cache of converted weights", () => {
  it("converts once for each number of bits and each version of the source", async () => {
    const path = await convert();
    const { mtimeMs } = await stat(weightsOf(path));
    expect(await convert()).toBe(path);
    expect((await stat(weightsOf(path))).mtimeMs).toBe(mtimeMs);
    expect(await convert(4)).not.toBe(path);
    await utimes(join(model.folder, "model.safetensors"), new Date(), new Date());
    expect(await convert()).not.toBe(path);
    const listed = await listCachedWeights();
    expect(listed.map(({ bits, isInUse }) => [bits, isInUse])).toEqual([
      [8, false],
      [4, false],
      [8, false],
    ]);
    expect(warnings).toEqual([]);
  });

  it.each([
    ["that was cut off", async (path: string) => truncate(weightsOf(path), 1000), "SHA-256"],
    [
      "that was changed",
      async (path: string) => {
        const bytes = await readFile(weightsOf(path));
        bytes[5000] ^= 1;
        await writeFile(weightsOf(path), bytes);
      },
      "SHA-256",
    ],
    ["without its index", async (path: string) => rm(join(path, "index.json")), "missing"],
    [
      "of another version",
      async (path: string) => {
        await writeFile(join(path, "index.json"), '{"version":99}');
        await rm(join(path, "SHA256SUMS"));
      },
      "unreadable",
    ],
  ])("converts again instead of an entry %s, with one warning", async (_, damage, text) => {
    const path = await convert();
    const bytes = await readFile(weightsOf(path));
    await damage(path);
    expect(await convert()).toBe(path);
    expect(await convert()).toBe(path);
    expect(Buffer.compare(await readFile(weightsOf(path)), bytes)).toBe(0);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(text);
    expect(warnings[0]).toContain("converted again");
  });

  it("removes the entry that was used longest ago, and none that is in use", async () => {
    const first = await convert(8);
    await convert(4);
    await convert(8);
    const sizes = (await listCachedWeights()).map(({ bytes }) => bytes);
    vi.stubEnv("LLAMAGYM_CACHE_GB", String((sizes[0] + sizes[1] + 1) / 1e9));
    const opened = await open(8);
    expect(await getFolder(opened)).toBe(first);
    await utimes(join(model.folder, "model.safetensors"), new Date(), new Date());
    const other = await convert(8);
    const left = await listCachedWeights();
    expect(left.map(({ key, bits, isInUse }) => [key, bits, isInUse])).toEqual([
      [other.slice(-32), 8, false],
      [first.slice(-32), 8, true],
    ]);
    expect((await clearCachedWeights()).map(({ key }) => key)).toEqual([other.slice(-32)]);
    await opened.close();
    expect(await clearCachedWeights()).toHaveLength(1);
    expect(await listCachedWeights()).toEqual([]);
  });

  it.each([
    ["is too small", async () => void vi.stubEnv("LLAMAGYM_CACHE_GB", "0.001"), "LLAMAGYM_CACHE_GB"],
    [
      "cannot be written",
      async () => {
        await mkdir(cache);
        await writeFile(join(cache, "weights"), "a file");
      },
      "could not be written",
    ],
  ])("converts into a temporary file, with one warning, where the cache %s", async (_, prepare, text) => {
    await prepare();
    expect(await convert()).toContain(tmpdir());
    expect(await convert()).not.toContain(cache);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("converted again at each start");
    expect(warnings[0]).toContain(text);
  });

  it("refuses a size that is not a number", async () => {
    vi.stubEnv("LLAMAGYM_CACHE_GB", "20 GB");
    await expect(convert()).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  });
});

const PROGRAM = `
const { CausalLM } = await import(process.argv[1]);
console.log("open");
const model = await CausalLM.open(process.argv[2], { device: "cpu", threads: 1, quantize: 8 });
const { folder } = await model.weights.getSessionOptions({ weights: [] }, model.runtime);
console.log(folder);
await model.close();
process.exit(0);
`;

function startProcess() {
  const args = ["--input-type=module", "-e", PROGRAM, MODULE_URL, model.folder];
  const child = spawn(process.execPath, args, { env: { ...process.env, LLAMAGYM_CACHE: cache } });
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  const closed = once(child, "close").then(() => ({ folder: out.trim().split("\n").at(-1), err }));
  return { child, opened: once(child.stdout, "data"), closed };
}

describe("processes", () => {
  it("that start at once convert once", async () => {
    const results = await Promise.all(Array.from({ length: 3 }, () => startProcess().closed));
    const [{ key, isInUse }, ...others] = await listCachedWeights();
    expect(others).toEqual([]);
    expect(isInUse).toBe(false);
    for (const { folder: path, err } of results) expect([path, err]).toEqual([join(cache, "weights", key), ""]);
  }, 60_000);

  it("that are killed while converting leave nothing that another one takes for weights", async () => {
    const undisturbed = startProcess();
    await undisturbed.opened;
    const since = performance.now();
    const { folder: path } = await undisturbed.closed;
    const duration = performance.now() - since;
    const bytes = await readFile(weightsOf(path!));
    for (let kill = 0; kill < KILLS; kill++) {
      await rm(path!, { recursive: true, force: true });
      const { child, opened, closed } = startProcess();
      await opened;
      const timer = setTimeout(() => child.kill("SIGKILL"), (duration * (kill + 0.5)) / KILLS);
      await closed;
      clearTimeout(timer);
      const entries = await readdir(join(cache, "weights"));
      const isAbsent = entries.every((name) => name.startsWith("."));
      expect(isAbsent || Buffer.compare(await readFile(weightsOf(path!)), bytes) === 0).toBe(true);
    }
    const { folder: last, err } = await startProcess().closed;
    expect([last, err]).toEqual([path, ""]);
    expect(Buffer.compare(await readFile(weightsOf(path!)), bytes)).toBe(0);
    const left = await readdir(join(cache, "weights"));
    expect(left.filter((name) => name.endsWith(".partial"))).toEqual([]);
  }, 600_000);
});
