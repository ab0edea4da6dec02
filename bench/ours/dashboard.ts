import { createWriteStream } from "node:fs";
import { appendFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { startDashboard } from "../../src/app/dashboard/server.js";
import { encodeChunk } from "../../src/rl/tracking/rollouts/chunk.js";
import { launchBrowser } from "../../test/support/browser.js";
import { recordedEpisode, recordedTurn } from "../../test/support/recorded-episode.js";
import type { DashboardWork } from "../dashboard.js";
import type { Request, Result } from "../framework.js";
import { serve } from "../serve.js";

type Values = Record<string, number>;
type Work<Name extends DashboardWork["work"]> = Extract<DashboardWork, { work: Name }>;

/**
 * Writes a finished run whose metrics are waves, in parts, as a long one does not fit into one
 * string.
 */
async function writeRun(folder: string, updates: number, metrics: number): Promise<void> {
  await mkdir(folder, { recursive: true });
  const config = { version: 2, env: "Blackjack-v1", model: "embedded", algorithm: "ppo", seed: 1, turns: 64 * updates };
  await writeFile(join(folder, "config.json"), JSON.stringify(config));
  const log = ["start", "end"].map((kind) => ({ time: 1, step: 0, kind, message: kind, outcome: "finished" }));
  await writeFile(join(folder, "log.jsonl"), log.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const file = createWriteStream(join(folder, "metrics.jsonl"));
  for (let step = 1; step <= updates; step++)
    if (!file.write(metricLine(step, metrics, Math.sin(step / 1000)))) await once(file, "drain");
  file.end();
  await once(file, "close");
}

function metricLine(step: number, metrics: number, value: number): string {
  const values = Array.from({ length: metrics }, (_, i) => [`metric/${i}`, Math.cos(step / (50 + i))] as const);
  const counts = { step, num_turns: 64 * step, num_episodes: 32 * step, step_time: 1 };
  return `${JSON.stringify({ ...counts, ...Object.fromEntries(values), "rollout/ep_rew_mean": value })}\n`;
}

/** Opens the dashboard of a new folder in a new browser for `measure`. */
async function withPage(
  prepare: (runs: string) => Promise<void>,
  measure: (page: Page, open: (view: string) => Promise<void>, runs: string) => Promise<Result>,
): Promise<Result> {
  const runs = await mkdtemp(join(tmpdir(), "bench-dashboard-"));
  await prepare(runs);
  const dashboard = await startDashboard({ runs });
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
    const open = async (view: string) => void (await page.goto(`${dashboard.url}#/${view}`));
    return await measure(page, open, runs);
  } finally {
    await browser.close();
    await dashboard.close();
    await rm(runs, { recursive: true });
  }
}

async function timeOpening(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

/** Measures frames and long tasks of the page while `work` uses it. */
async function measureFrames(page: Page, name: string, work: () => Promise<unknown>): Promise<Values> {
  await page.evaluate(`
    window.bench = { frames: [], tasks: [], isOn: true };
    new PerformanceObserver((list) => bench.tasks.push(...list.getEntries().map(({ duration }) => duration)))
      .observe({ type: "longtask" });
    let last = performance.now();
    const next = (now) => { bench.frames.push(now - last); last = now; if (bench.isOn) requestAnimationFrame(next); };
    requestAnimationFrame(next);
  `);
  await work();
  const { frames, tasks } = await page.evaluate<{ frames: number[]; tasks: number[] }>("bench.isOn = false, bench");
  const sorted = frames.sort((a, b) => a - b);
  return {
    [`${name}_frame_ms_median`]: sorted[sorted.length >> 1],
    [`${name}_frame_ms_p95`]: sorted[Math.floor(0.95 * (sorted.length - 1))],
    [`${name}_frame_ms_max`]: sorted[sorted.length - 1],
    [`${name}_long_tasks`]: tasks.length,
    [`${name}_long_task_ms_max`]: Math.max(0, ...tasks),
  };
}

/** Scrolls an element to its end and back in 240 frames. */
const scroll = async (page: Page, selector: string) =>
  page.evaluate(`new Promise((resolve) => {
    const element = document.querySelector(${JSON.stringify(selector)});
    let frame = 0;
    const next = () => {
      element.scrollTop = (element.scrollHeight - element.clientHeight) * (1 - Math.abs(1 - frame / 120));
      if (frame++ < 240) requestAnimationFrame(next); else resolve();
    };
    next();
  })`);

async function heapMegabytes(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  return usedSize / 1e6;
}

const list = async ({ runs, updates }: Work<"list">) =>
  withPage(
    async (folder) => {
      for (let i = 0; i < runs; i++) await writeRun(join(folder, `run-${i}`), updates, 30);
    },
    async (page, open) => {
      const seconds = await timeOpening(async () => {
        await open("runs");
        await page.getByText(`${runs} in`).waitFor();
        await page.locator(".run-row .col-name a").first().waitFor();
      });
      const frames = await measureFrames(page, "scroll", async () => scroll(page, ".run-list"));
      return { seconds: [seconds], count: 1, values: { ...frames, heap_mb: await heapMegabytes(page) } };
    },
  );

const curves = async ({ updates, metrics, points }: Work<"curves">) =>
  withPage(
    async (folder) => writeRun(join(folder, "long"), updates, metrics),
    async (page, open, folder) => {
      const readout = page.locator("article.large .readout");
      const seconds = await timeOpening(async () => {
        await open("curves?run=long&metric=rollout/ep_rew_mean&x=updates");
        await readout.getByText(/\d/).waitFor();
        await page.locator("article.large canvas").waitFor();
      });
      const scrolling = await measureFrames(page, "scroll", async () => scroll(page, "main"));
      const zooming = await measureFrames(page, "zoom", async () => zoom(page));
      const delays: number[] = [];
      for (let i = 1; i <= points; i++) {
        const delay = timeOpening(async () => readout.getByText(String(i), { exact: true }).waitFor());
        await appendFile(join(folder, "long", "metrics.jsonl"), metricLine(updates + i, metrics, i));
        delays.push(await delay);
      }
      const live = {
        live_seconds_mean: delays.reduce((a, b) => a + b) / points,
        live_seconds_max: Math.max(...delays),
      };
      const heap = await heapMegabytes(page);
      return { seconds: [seconds], count: 1, values: { ...live, ...scrolling, ...zooming, heap_mb: heap } };
    },
  );

/** Zooms three times into the middle of the large chart, and out. */
async function zoom(page: Page): Promise<void> {
  const plot = page.locator("article.large .u-over");
  await plot.scrollIntoViewIfNeeded();
  const { x, y, width } = (await plot.boundingBox())!;
  for (let i = 0; i < 3; i++) {
    await page.mouse.move(x + 0.25 * width, y + 40);
    await page.mouse.down();
    await page.mouse.move(x + 0.75 * width, y + 40, { steps: 20 });
    const answered = page.waitForResponse((response) => response.url().includes("/series"));
    await page.mouse.up();
    await answered;
  }
  await page.getByRole("button", { name: "Reset zoom" }).click();
}

const tokens = async ({ tokens: count }: Work<"tokens">) =>
  withPage(
    async (folder) => {
      await writeRun(join(folder, "long"), 1, 1);
      const ids = Array.from({ length: count }, (_, i) => 2 + (i % 500));
      const logProbs = ids.map((_, i) => -(i % 7));
      const turn = recordedTurn({ tokens: ids, text: "", logProbs, marks: "t".repeat(count) });
      const texts = Object.fromEntries(Array.from({ length: 502 }, (_, i) => [i, ` word${i}`]));
      const record = { episodes: [recordedEpisode(1, turn)], vocabulary: { texts, special: [] } };
      await writeFile(join(folder, "long", "rollouts.jsonl"), await encodeChunk(1, record));
    },
    async (page, open) => {
      const seconds = await timeOpening(async () => {
        await open("tokens?run=long");
        await page.locator(".token-row .token").first().waitFor();
      });
      const frames = await measureFrames(page, "scroll", async () => scroll(page, ".token-list .virtual-list"));
      return { seconds: [seconds], count: 1, values: { ...frames, heap_mb: await heapMegabytes(page) } };
    },
  );

await serve<DashboardWork>(async (request: Request<DashboardWork>) => {
  if (request.work === "list") return list(request);
  return request.work === "curves" ? curves(request) : tokens(request);
});
