import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  launchBrowser,
  skipsBrowser,
  startDashboardCommand,
  startProxy,
  type DashboardProcess,
} from "./support/browser.js";
import { runCommand } from "./support/command.js";
import { testViewsOfWrittenRuns, writeRun } from "./support/dashboard-views.js";
import { HOSTILE, writeHostileRun } from "./support/hostile-run.js";

const PAGE_FOLDER = fileURLToPath(new URL("../dist/dashboard", import.meta.url));
const MAX_FIRST_LOAD_BYTES = 100_000;
const SMALL_UPDATES = ["--batch-size", "32", "--mini-batch-size", "32", "--num-ppo-epochs", "1", "--num-envs", "8"];

describe.skipIf(skipsBrowser)("the dashboard's page", () => {
  let runs: string;
  let browser: Browser;
  let dashboard: DashboardProcess;
  let page: Page;
  const problems: string[] = [];

  const train = (name: string, ...args: readonly string[]) =>
    runCommand(["train", "blackjack", "--eval-episodes", "0", "--output", join(runs, name), ...args]);
  const open = (hash: string): Promise<unknown> => page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  const heading = (name: string) => page.getByRole("heading", { name, level: 1 }).waitFor();

  beforeAll(async () => {
    runs = await mkdtemp(join(tmpdir(), "dashboard-"));
    [dashboard, browser] = await Promise.all([startDashboardCommand(runs), launchBrowser()]);
    page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
    page.setDefaultTimeout(90_000);
    page.on("pageerror", (error) => problems.push(error.message));
    page.on(
      "console",
      (message) => message.text().includes("Content Security Policy") && problems.push(message.text()),
    );
    page.on("request", (request) => {
      if (!request.url().replace("blob:", "").startsWith(new URL(dashboard.url).origin))
        problems.push(`requests ${request.url()}`);
    });
    await page.goto(dashboard.url);
  });
  afterAll(async () => {
    await browser?.close();
    await dashboard?.stop();
    await rm(runs, { recursive: true, force: true });
  });

  it("shows a run that trains while the page is open, and controls it", async () => {
    await page.getByText("No runs yet").waitFor();
    const training = train("live", "--episodes", "100000", ...SMALL_UPDATES);
    await page.getByRole("link", { name: "live" }).click();
    await heading("Curves");
    const readout = page.locator("article.large .readout");
    await expect.poll(() => readout.textContent(), { timeout: 30_000 }).toMatch(/\d/);
    const first = await readout.textContent();
    await expect.poll(() => readout.textContent(), { timeout: 30_000 }).not.toBe(first);

    await page.getByRole("link", { name: "Control" }).click();
    await page.getByRole("button", { name: "Write checkpoint" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Write checkpoint" }).click();
    await page.locator("table.log .tag", { hasText: "control" }).first().waitFor();
    const setting = page.locator("form.setting", { hasText: "episodes" }).first();
    await setting.getByRole("spinbutton").fill("200000");
    await setting.getByRole("button", { name: "Change" }).click();
    await page.getByText("From 100,000 to 200,000").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Change" }).click();
    await page.locator("table.log .message", { hasText: /episodes.*200,?000/ }).waitFor();
    await page.getByRole("button", { name: "Stop after this update" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Stop the run" }).click();
    await training;
    await page.getByText("This run does not train at present").waitFor();
    expect(await readFile(join(runs, "live", "log.jsonl"), "utf8")).toContain('"control"');
  }, 120_000);

  it("lists runs with filter, sorting, tags and notes as text", async () => {
    await train("grpo", "--algorithm", "grpo", "--episodes", "32", "--rollouts", "all");
    await open("#/runs");
    await page.getByRole("link", { name: "grpo" }).waitFor();
    await page.getByLabel("Filter runs").fill("live");
    await expect.poll(() => page.getByRole("link", { name: "grpo" }).count(), { timeout: 10_000 }).toBe(0);
    await page.getByRole("button", { name: "Tags and note of live" }).click();
    await page.getByLabel("Tags, separated by commas").fill(`<script>alert(1)</script>, first`);
    await page.getByLabel("Note", { exact: true }).fill("a <b>note</b>");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("a <b>note</b>").waitFor();
    await page.getByText("<script>alert(1)</script>").waitFor();
    expect(JSON.parse(await readFile(join(runs, "live", "notes.json"), "utf8"))).toMatchObject({
      note: "a <b>note</b>",
    });
    await page.getByLabel("Filter runs").fill("");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    const names = () => page.locator(".run-row .col-name a").allTextContents();
    await expect.poll(names, { timeout: 10_000 }).toEqual(["grpo", "live"]);
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await expect.poll(names, { timeout: 10_000 }).toEqual(["live", "grpo"]);
  });

  it("draws metrics with explanations and downloads them", async () => {
    await open("#/curves?run=live&run=grpo");
    await page.locator("article.large canvas").waitFor();
    await page.locator("article.large").getByText("Mean return of the last 100 episodes").waitFor();
    for (const [format, start] of [
      ["SVG", "<svg"],
      ["CSV", "run,"],
      ["PNG", "\u0089PNG"],
    ]) {
      await page.locator("article.large summary[aria-label=Download]").click();
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.locator("article.large").getByRole("button", { name: format }).click(),
      ]);
      expect((await readFile(await download.path(), "latin1")).startsWith(start)).toBe(true);
    }
  });

  it("plays an episode turn by turn and shows its tokens", async () => {
    await open("#/episodes?run=grpo");
    await page.getByRole("img", { name: /^Dealer: .* Player: \d+/ }).waitFor();
    await page.getByText("Prompt", { exact: true }).waitFor();
    expect(await page.locator("pre.prompt").textContent()).toContain("blackjack");
    await page
      .locator(".episode-row", { hasText: /[2-9] turns/ })
      .first()
      .click();
    await page.locator(".film-controls", { hasText: /1 \/ [2-9]/ }).waitFor();
    await page.getByRole("button", { name: "Next turn" }).click();
    await page.locator(".film-controls", { hasText: "2 /" }).waitFor();
    await page.locator(".episode-page").getByRole("link", { name: "Tokens" }).click();
    await page.locator(".token-row .token").first().click();
    await page.locator(".token-detail", { hasText: "Log-probability" }).waitFor();
    await page.locator(".token-detail .bars li").first().waitFor();
    await page.keyboard.press("ArrowRight");
    await page.getByLabel("Color by").selectOption("trained");
    await page.locator(".token-row .mark-t, .token-row .mark-f").first().waitFor();
  });

  it("colors tokens by their distance to a teacher", async () => {
    await train("taught", "--algorithm", "grpo", "--episodes", "32", "--rollouts", "all", "--teacher", "embedded");
    await open("#/runs");
    await page.locator(".run-row", { hasText: "taught" }).waitFor();
    await open("#/tokens?run=taught");
    await page.getByLabel("Color by").selectOption("teacher");
    await page.locator(".token-row .token[class*=div-]").first().click();
    await page.locator(".token-detail", { hasText: "Teacher's log-probability" }).waitFor();
    expect(await page.getByText("This run has no record of this measure").count()).toBe(0);
    // The tokens of the run before would take the selection.
    await open("#/curves");
    await heading("Curves");
    await open("#/tokens?run=grpo");
    await page.getByLabel("Color by").selectOption("teacher");
    await page.getByText("This run has no record of this measure").waitFor();
  });

  it("shows the members of groups side by side", async () => {
    await open("#/groups?run=grpo");
    await page.locator(".group .member").first().waitFor();
    const silent = await page.locator(".group.silent").count();
    expect(await page.getByText("no signal: all rewards are equal").count()).toBe(silent);
    expect(await page.locator(".member strong").first().textContent()).toMatch(/\d/);
  });

  it("compares two models from the same start", async () => {
    await open("#/compare?run=live&run=grpo");
    await page.getByRole("button", { name: "Play both" }).click();
    await expect.poll(() => page.locator(".screen").count(), { timeout: 60_000 }).toBe(2);
    await page.getByText(/They part at turn|The completions are equal/).waitFor();
  });

  it("plays a checkpoint by hand and chats with it", async () => {
    await open("#/play?run=live");
    await page.getByRole("button", { name: "Load", exact: true }).click();
    await page.getByText("Observation that the model reads").waitFor({ timeout: 60_000 });
    await page.getByPlaceholder("Or write the completion").fill("stay");
    await page.getByRole("button", { name: "Take it" }).click();
    await page.getByText("The episode has ended").waitFor();
    await page.getByRole("button", { name: "Chat" }).click();
    await page.getByLabel("Message", { exact: true }).fill("hit or stay?");
    await page.getByRole("button", { name: "Send" }).click();
    await page.locator(".message.assistant").waitFor({ timeout: 30_000 });
    expect(await page.locator(".message.user").textContent()).toContain("hit or stay?");
  }, 120_000);

  it("shows a game episode with its board, and the opponents of a run in self-play", async () => {
    const command = [
      "train",
      "tic-tac-toe",
      "--self-play",
      "--opponents",
      "self:0.5,past:0.5",
      "--snapshot-steps",
      "1",
    ];
    const exact = ["--eval-exact", "--eval-steps", "100", "--action-mode", "scored", "--sft-warm-start", "none"];
    const output = ["--eval-episodes", "0", "--turns", "60", "--output", join(runs, "games")];
    await runCommand([...command, ...exact, ...output, ...SMALL_UPDATES]);
    await page.reload();
    await open("#/episodes?run=games");
    await page
      .locator(".episode-row", { hasText: /(first|second) against (itself|past)/ })
      .first()
      .click();
    await page.getByRole("img", { name: /X|O/ }).first().waitFor();
    await page.getByRole("link", { name: "Opponents" }).click();
    await heading("Opponents");
    await page.locator("tr", { hasText: /minimax\s*second/ }).waitFor();
    await page.getByRole("heading", { name: /NashConv/ }).waitFor();
    await page.locator("tr", { hasText: "update 0" }).waitFor();
    expect(await page.locator("main").textContent()).toContain("llamagym eval TicTacToe-v0 --elo");
    const players = [
      { name: "<b>result</b>", elo: 120.4, score: 0.75 },
      { name: "random", elo: 0, score: 0.25 },
    ];
    await writeFile(join(runs, "games", "elo.json"), JSON.stringify({ games: 0, players }));
    await page.reload();
    await page.locator("tr", { hasText: "<b>result</b>120" }).waitFor();
    await writeFile(join(runs, "games", "elo.json"), '{"games": 0, "players": [{"name": 3}]}');
    await page.reload();
    await page.getByText("elo.json:").waitFor();
    await open("#/opponents?run=grpo");
    await page.getByText("This run does not train in self-play").waitFor();
  }, 120_000);

  it("shows health, phases and configuration", async () => {
    await open("#/health?run=live");
    await page.getByRole("img", { name: /Rollout .*%/ }).waitFor();
    await page.getByText("Turns per second").waitFor();
    expect(await page.locator(".config").textContent()).toContain("Blackjack-v1");
  });

  it("shows hostile text as text", async () => {
    await writeHostileRun(join(runs, "hostile"), HOSTILE, 4, { tags: [HOSTILE], note: HOSTILE });
    await mkdir(join(runs, "broken"));
    await writeFile(join(runs, "broken", "config.json"), '{"version": 2, "env": "Bl');
    for (const view of ["runs", "curves", "episodes", "tokens", "groups", "compare", "play", "control", "health"]) {
      await open(`#/${view}?run=hostile`);
      await page.locator(".view h1").waitFor();
      await page.locator("main", { hasText: /<script>|hostile/ }).waitFor();
      expect(await page.locator("main script, main img, main b").count()).toBe(0);
    }
    await open("#/episodes?run=hostile");
    await page.locator(".screen .ansi-fg-red", { hasText: "red" }).waitFor();
    expect(await page.locator(".screen").textContent()).not.toContain("\u001b");
    expect(await page.evaluate("window.hacked")).toBeUndefined();
    await open("#/health?run=broken");
    await heading("Health");
  });

  testViewsOfWrittenRuns(() => ({ page, runs, browser, url: dashboard.url }));

  it("keeps a million tokens out of the document", async () => {
    await writeHostileRun(join(runs, "long"), "Long-v0", 1_000_000, { tags: [], note: "" });
    await open("#/runs");
    await page.getByRole("link", { name: "long" }).waitFor();
    await open("#/tokens?run=long");
    await page.locator(".token").first().waitFor({ timeout: 60_000 });
    expect(await page.locator(".token-row .token").count()).toBeLessThan(5000);
    const list = page.locator(".token-list .virtual-list");
    await list.evaluate((element) => (element.scrollTop = element.scrollHeight));
    await expect.poll(() => page.locator(".token-row").count(), { timeout: 10_000 }).toBeGreaterThan(5);
    await page.locator(".token-row .token").last().click();
    await page.locator(".token-detail", { hasText: "Log-probability" }).waitFor();
    expect(await page.locator(".token-row .token").count()).toBeLessThan(5000);
  });

  it("catches up after a lost connection", async () => {
    const link = new URL(dashboard.url);
    const proxy = await startProxy(Number(link.port));
    link.port = String(proxy.port);
    const other = await browser.newPage();
    await other.goto(link.href);
    await other.getByText("Live", { exact: true }).waitFor();
    await other.evaluate(`location.hash = "#/curves?run=hostile&metric=loss&x=updates"`);
    const readout = other.locator("article.large .readout");
    await expect.poll(() => readout.textContent(), { timeout: 20_000 }).toBe("1");
    proxy.cut();
    await other.getByText("Connection lost").waitFor();
    await appendFile(
      join(runs, "hostile", "metrics.jsonl"),
      `${JSON.stringify({ step: 2, num_turns: 16, loss: 42 })}\n`,
    );
    await writeRun(join(runs, "later"), {}, [{ step: 1, num_turns: 8, loss: 1 }]);
    proxy.restore();
    await expect.poll(() => readout.textContent(), { timeout: 20_000 }).toBe("42");
    await other.getByText("Connection lost").waitFor({ state: "detached" });
    await other.evaluate(`location.hash = "#/runs"`);
    await other.getByRole("link", { name: "later" }).waitFor();
    await other.close();
    proxy.close();
  });

  it("fits a phone and follows the dark theme", async () => {
    const phone = await browser.newPage({ viewport: { width: 390, height: 800 }, colorScheme: "dark" });
    await phone.goto(dashboard.url);
    for (const view of ["runs", "curves", "episodes", "tokens", "groups", "control", "health"]) {
      await phone.evaluate(`location.hash = "#/${view}?run=live"`);
      await phone.locator(".view h1").waitFor();
      expect(await phone.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(390);
    }
    expect(await phone.evaluate("document.documentElement.dataset.theme")).toBe("dark");
    await phone.close();
  });

  it("shows the same views from a report file, without a server", async () => {
    const file = join(runs, "report.html");
    const { status, err } = await runCommand(["report", join(runs, "live"), join(runs, "grpo"), "--output", file]);
    expect(err).not.toContain("Error");
    expect(status).toBe(0);
    expect((await stat(file)).size).toBeLessThan(10_000_000);
    const report = await browser.newPage();
    const requests: string[] = [];
    report.on("request", (request) => requests.push(request.url()));
    await report.goto(pathToFileURL(file).href);
    await report.getByText("Report", { exact: true }).waitFor();
    await report.getByRole("link", { name: "grpo" }).click();
    await report.locator("article.large canvas").waitFor();
    await report.getByRole("link", { name: "Episodes" }).click();
    await report.locator(".screen").waitFor();
    await report.getByRole("link", { name: "Groups" }).click();
    await report.locator(".member").first().waitFor();
    await report.getByRole("link", { name: "Compare" }).click();
    await expect.poll(() => report.locator(".screen").count(), { timeout: 20_000 }).toBe(2);
    expect(requests.filter((url) => !url.startsWith("file:") && !url.startsWith("data:"))).toEqual([]);
    await report.close();
  });

  it("raises no error, violates no policy and requests nothing from other hosts", () => {
    expect(problems).toEqual([]);
  });
});

describe("the built page", () => {
  it("loads less than 100 kB of compressed script and style", async () => {
    const names = await readdir(join(PAGE_FOLDER, "assets"));
    const contents = await Promise.all(names.map((name) => readFile(join(PAGE_FOLDER, "assets", name))));
    const bytes = contents.reduce((sum, content) => sum + gzipSync(content).length, 0);
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(MAX_FIRST_LOAD_BYTES);
  });
});
