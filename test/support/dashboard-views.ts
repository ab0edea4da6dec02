import { appendFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { expect, it } from "vitest";
import { encodeChunk } from "../../src/rl/tracking/rollouts/chunk.js";
import { recordedEpisode, recordedTurn } from "./recorded-episode.js";

/** The page and the folder of runs of a dashboard's test. */
export interface DashboardTest {
  readonly page: Page;
  readonly runs: string;
  readonly browser: Browser;
  /** The link with the token. */
  readonly url: string;
}

const toLines = (lines: readonly object[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join("");

/** Writes a run folder with the given settings and records of metrics.jsonl. */
export async function writeRun(folder: string, config: object, records: readonly object[]): Promise<void> {
  await mkdir(folder, { recursive: true });
  const settings = { version: 2, env: "Blackjack-v1", model: "embedded", algorithm: "ppo", seed: 1, ...config };
  await writeFile(join(folder, "config.json"), JSON.stringify(settings));
  await writeFile(join(folder, "metrics.jsonl"), toLines(records));
}

/** Ten updates of 100 turns; the loss is `base` plus the update. */
const tenUpdates = (base: number) =>
  Array.from({ length: 10 }, (_, i) => ({ step: i + 1, num_turns: 100 * (i + 1), loss: base + i + 1, entropy: base }));

const job = (worker: string, time: number, fields: object = {}) => ({
  time,
  worker,
  outcome: "used",
  queued: time - 3000,
  seconds: 2,
  version: 4,
  step: 5,
  pending: 3,
  jobBytes: 100,
  answerBytes: 1000,
  ...fields,
});

async function writeSweep(folder: string): Promise<void> {
  const values = [0.25, 0.75, null];
  const trials = values.map((value, trial) => ({
    trial,
    settings: { learningRate: 10 ** -(trial + 3), optimizer: trial === 1 ? "adamw" : "sgd" },
    rung: 0,
    value,
    standardError: value === null ? null : 0.1,
    failure: value === null ? "<b>out of memory</b>" : null,
    runs: value === null ? [] : [{ folder: `trial-${trial}` }],
  }));
  for (const trial of [0, 1]) await writeRun(join(folder, `trial-${trial}`), {}, tenUpdates(trial));
  await writeFile(join(folder, "sweep.json"), JSON.stringify({ search: { learningRate: {}, optimizer: {} } }));
  const results = { env: "Blackjack-v1", method: "random", metric: "return", goal: "maximize", finished: true };
  const ranked = [trials[1], trials[0], trials[2]];
  await writeFile(join(folder, "results.json"), JSON.stringify({ ...results, trials: ranked }));
}

const HOSTILE_WORKER = "<b>worker</b>\u001b[31m";

/**
 * Writes a run whose rollouts three workers have answered, one of them with a result that was
 * refused.
 */
async function writeWorkersRun(folder: string): Promise<void> {
  await writeRun(folder, {}, [{ step: 1, num_turns: 8, step_time: 4, "time/rollout": 3 }]);
  const jobs = [
    job("worker-2", 10_000, { version: 5 }),
    job("worker-10", 11_000, { version: 3 }),
    job(HOSTILE_WORKER, 12_000, { outcome: "refused", seconds: undefined, reason: "<i>bad</i>" }),
  ];
  await writeFile(join(folder, "jobs.jsonl"), `${toLines(jobs)}{"time": 13000}\n`);
}

/** Declares the tests of views whose runs are written by hand. */
export function testViewsOfWrittenRuns(getTest: () => DashboardTest): void {
  const open = async (hash: string) => getTest().page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  /** Downloads a chart as text. */
  const download = async (chart: string, format: "SVG" | "CSV") => {
    const { page } = getTest();
    const card = page.locator(chart);
    await card.locator("summary[aria-label=Download]").click();
    const saved = page.waitForEvent("download");
    await card.getByRole("button", { name: format }).click();
    return readFile(await (await saved).path(), "utf8");
  };

  it("opens a sweep into parallel coordinates and its trials", async () => {
    const { page, runs } = getTest();
    await writeSweep(join(runs, "search"));
    await open("#/runs");
    await page.reload();
    const row = page.locator(".run-row", { hasText: "3 trials over learningRate, optimizer" });
    expect(await row.locator(".col-result").textContent()).toBe("0.75");
    await row.getByRole("link", { name: "search" }).click();
    const chart = page.getByRole("img", { name: "Trials as parallel coordinates" });
    await chart.waitFor();
    expect(await chart.locator(".title").allTextContents()).toEqual(["learningRate (log)", "optimizer", "return"]);
    expect(await chart.locator("polyline").count()).toBe(3);
    const trials = page.locator("tbody tr");
    expect(await trials.locator("td:first-child").allTextContents()).toEqual(["1", "0", "2"]);
    await trials.first().hover();
    await chart.locator("polyline.marked").waitFor();
    expect(await trials.last().locator("span[title]").getAttribute("title")).toBe("<b>out of memory</b>");
    await trials.first().getByRole("link", { name: "curves" }).click();
    await page.locator(".chip-name", { hasText: "search/trial-1" }).waitFor();
  });

  it("lists runs of a sweep between single ones, for their curves in one chart", async () => {
    const { page, runs } = getTest();
    await writeSweep(join(runs, "search"));
    await writeRun(join(runs, "single"), {}, tenUpdates(3));
    await open("#/runs");
    await page.reload();
    await page.getByRole("link", { name: "single" }).waitFor();
    const trial = page.locator(".run-row", { hasText: "search/trial-1" });
    expect(await trial.count()).toBe(0);
    await page.getByLabel("Runs of sweeps").check();
    await trial.getByRole("checkbox").check();
    await page.locator(".run-row", { hasText: "single" }).getByRole("checkbox").check();
    await page.getByRole("link", { name: "Show curves" }).click();
    await page.locator(".chip-name", { hasText: "search/trial-1" }).waitFor();
    await page.locator(".chip-name", { hasText: "single" }).waitFor();
  });

  it("shows the metrics of updates that follow a warm start while the page is open", async () => {
    const { page, runs } = getTest();
    await writeRun(join(runs, "warm"), {}, [{ step: 0, "sft/loss": 0.5 }]);
    await open("#/curves?run=warm&x=updates");
    await page.reload();
    const title = () => page.locator("article.large h3").textContent();
    await expect.poll(title, { timeout: 20_000 }).toBe("sft/loss");
    const metrics = join(runs, "warm", "metrics.jsonl");
    const readout = () => page.locator("article.large .readout").textContent();
    // Once this has arrived, the page is connected.
    await appendFile(metrics, toLines([{ step: 0, "sft/loss": 0.25 }]));
    await expect.poll(readout, { timeout: 20_000 }).toBe("0.25");
    const updates = tenUpdates(0).map((update) => ({ ...update, "rollout/ep_rew_mean": update.loss }));
    await appendFile(metrics, toLines(updates));
    await expect.poll(title, { timeout: 20_000 }).toBe("rollout/ep_rew_mean");
    await expect.poll(readout, { timeout: 20_000 }).toBe("10");
  });

  it("averages seeds into a band", async () => {
    const { page, runs } = getTest();
    for (const seed of [1, 2])
      await writeRun(join(runs, `seed-${seed}`), { seed }, tenUpdates(10 * seed).slice(0, 8 + seed));
    await open("#/curves?run=seed-1&run=seed-2&metric=loss&x=updates");
    await page.reload();
    // The readout shows the last values unless the pointer is on the chart.
    await page.mouse.move(0, 0);
    const readout = page.locator("article.large .readout");
    await expect.poll(() => readout.textContent(), { timeout: 20_000 }).toBe("1930");
    expect(await download("article.large", "SVG")).not.toContain('class="band"');
    await page.getByLabel("Average seeds").check();
    await expect.poll(() => readout.textContent(), { timeout: 20_000 }).toBe("24");
    expect(await download("article.large", "SVG")).toContain('class="band"');
  });

  it("waits for a run that the address names and that is not there yet", async () => {
    const { page, runs } = getTest();
    await open("#/curves?run=later&metric=loss&x=updates");
    await page.getByText("There is no run later in").waitFor();
    await writeRun(join(runs, "later"), {}, tenUpdates(0));
    await page.getByRole("article", { name: "entropy", exact: true }).waitFor();
    expect(await page.getByText("There is no run later in").count()).toBe(0);
  });

  it("zooms all pictures together", async () => {
    const { page, runs } = getTest();
    await writeRun(join(runs, "zoomed"), {}, tenUpdates(0));
    await page.reload();
    await open("#/curves?run=zoomed&metric=loss&x=updates");
    const other = page.getByRole("article", { name: "entropy", exact: true });
    await other.scrollIntoViewIfNeeded();
    await other.locator("canvas").waitFor();
    const countValues = async () =>
      (await download("article.chart[aria-label=entropy]", "CSV")).trim().split("\n").length - 1;
    await expect.poll(countValues, { timeout: 20_000 }).toBe(10);
    const plot = page.locator("article.large .u-over");
    await plot.scrollIntoViewIfNeeded();
    const { x, y, width } = (await plot.boundingBox())!;
    await page.mouse.move(x + 0.3 * width, y + 40);
    await page.mouse.down();
    await page.mouse.move(x + 0.6 * width, y + 40, { steps: 4 });
    await page.mouse.up();
    await page.getByRole("button", { name: "Reset zoom" }).waitFor();
    // Updates 1 to 10 over the width: 0.3 to 0.6 of it is 3.7 to 6.4.
    await expect.poll(countValues, { timeout: 20_000 }).toBe(3);
    await page.getByRole("button", { name: "Reset zoom" }).click();
    await expect.poll(countValues, { timeout: 20_000 }).toBe(10);
  });

  it("marks groups without signal and shows them last", async () => {
    const { page, runs } = getTest();
    const member = (group: number, envSlot: number, reward: number, hasSignal: boolean) => {
      const episode = recordedEpisode(1, recordedTurn({ reward }));
      const advantage = hasSignal ? reward - 0.5 : 0;
      return {
        ...episode,
        row: { ...episode.row, id: `1.${envSlot}`, envSlot, group, return: reward, advantage, hasSignal },
      };
    };
    const episodes = [member(0, 0, 1, false), member(0, 1, 1, false), member(1, 2, 0, true), member(1, 3, 1, true)];
    await writeRun(join(runs, "groups"), { algorithm: "grpo" }, tenUpdates(0));
    const vocabulary = { texts: { 1: "prompt", 2: "x" }, special: [] };
    await writeFile(join(runs, "groups", "rollouts.jsonl"), await encodeChunk(1, { episodes, vocabulary }));
    await page.reload();
    await open("#/groups?run=groups");
    await page.getByText("2 groups, 1 without signal").waitFor();
    expect(await page.locator(".group h2").allTextContents()).toEqual(["Group 1", "Group 0"]);
    expect(await page.locator(".group.silent .tag").allTextContents()).toEqual(["no signal: all rewards are equal"]);
    expect(await page.locator(".group").first().locator("strong").allTextContents()).toEqual([
      "0",
      "−0.5",
      "+1",
      "+0.5",
    ]);
  });

  it("shows the jobs of workers and follows them", async () => {
    const { page, runs } = getTest();
    await writeWorkersRun(join(runs, "workers"));
    await writeRun(join(runs, "alone"), {}, tenUpdates(0));
    await open("#/health?run=alone");
    await page.reload();
    await page.getByRole("heading", { name: "Health", level: 1 }).waitFor();
    expect(await page.getByRole("link", { name: "Workers" }).count()).toBe(0);
    await open("#/health?run=workers");
    await page.getByRole("link", { name: "Workers" }).click();
    await page.getByText("Lines of jobs.jsonl that cannot be read: 1.").waitFor();
    const names = page.locator(".lane[role=listitem] .lane-name");
    expect(await names.allTextContents()).toEqual(["<b>worker</b>", "worker-2", "worker-10"]);
    expect(await page.locator(".lanes .virtual-list").evaluate(({ clientHeight }) => clientHeight)).toBe(90);
    const bars = page.locator(".lane-bars i");
    expect(await bars.evaluateAll((elements) => elements.map(({ className }) => className))).toEqual([
      "refused",
      "stale-0",
      "stale-2",
    ]);
    expect(await bars.first().getAttribute("title")).toContain("<i>bad</i>");
    await page.locator(".facts", { hasText: "Learner waits75.0 %" }).waitFor();
    expect(
      await page
        .getByRole("img", { name: /over time/ })
        .locator("canvas")
        .count(),
    ).toBe(2);
    await appendFile(join(runs, "workers", "jobs.jsonl"), toLines([job("worker-3", 14_000)]));
    await expect.poll(() => names.count(), { timeout: 20_000 }).toBe(4);
  });

  it("fits the workers and a sweep into a phone, light and dark", async () => {
    const { browser, runs, url } = getTest();
    await writeWorkersRun(join(runs, "phone-workers"));
    await writeSweep(join(runs, "phone-search"));
    const colors: string[] = [];
    for (const colorScheme of ["light", "dark"] as const) {
      const phone = await browser.newPage({ viewport: { width: 390, height: 800 }, colorScheme });
      phone.setDefaultTimeout(90_000);
      await phone.goto(url);
      for (const [address, part] of [
        ["#/workers?run=phone-workers", ".lane-bars i"],
        ["#/sweep?id=phone-search", "polyline"],
      ]) {
        await phone.evaluate(`location.hash = ${JSON.stringify(address)}`);
        await phone.locator(part).nth(2).waitFor();
        expect(await phone.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(390);
      }
      await phone.evaluate(`location.hash = "#/workers?run=phone-workers"`);
      const lane = phone.locator(".lane[role=listitem]").last();
      const bars = lane.locator(".lane-bars");
      expect((await bars.boundingBox())!.width).toBeGreaterThan(100);
      expect((await bars.locator("i").boundingBox())!.x).toBeLessThan(390);
      colors.push(await phone.evaluate<string>("getComputedStyle(document.querySelector('.lane-name')).color"));
      await phone.close();
    }
    expect(colors[0]).not.toBe(colors[1]);
  });
}
