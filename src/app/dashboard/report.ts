import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { LlamaGymError } from "../../core/errors.js";
import type { EpisodeDetail, EpisodeList, ReportData, RunList, RunRow, SweepRow, XAxis } from "./api.js";
import { DashboardData } from "./dashboard-data.js";
import { readMetricCatalog } from "./metric-catalog.js";
import { readJobs } from "./read-jobs.js";
import { readLeagueInfo } from "./read-league.js";
import { readSweep } from "./read-sweep.js";
import { RunsFolder } from "./run-files.js";
import { pageFolder } from "./static-files.js";

/** Points of a curve: enough for a page, and a run with sixty metrics takes about a megabyte. */
const POINTS = 150;
/** Episodes of a run, spread over its recording. */
const MAX_EPISODES = 30;
/** Characters of a run's episodes and groups, so that the file can be mailed. */
const MAX_EPISODE_CHARS = 1_500_000;
const X_AXES: readonly XAxis[] = ["turns", "updates", "seconds", "episodes"];

/** The runs of a report, under the ids that it shows. */
interface ReportedRun {
  readonly data: DashboardData;
  /** Id within its folder. */
  readonly source: string;
  readonly id: string;
}

/**
 * Renders runs and sweeps into one HTML file that needs no server and loads nothing.
 * @throws FILE_NOT_FOUND for a folder that does not exist or contains no run, and if the page is
 * not built.
 */
export async function renderReport(folders: readonly string[], page = pageFolder()): Promise<string> {
  const { runs, sweeps } = await findReportedRuns(folders);
  const answers: Record<string, unknown> = { "/api/metrics": await readMetricCatalog() };
  const rows: RunRow[] = [];
  for (const { data, source, id } of runs) {
    const detail = await data.detail(source);
    const row: RunRow = { ...detail.row, id, state: detail.row.state === "running" ? "stopped" : detail.row.state };
    const path = `/api/runs/${encodeURIComponent(id)}`;
    rows.push(row);
    answers[path] = { ...detail, row, changeable: [] };
    for (const x of X_AXES) answers[`${path}/series?x=${x}`] = await data.metrics.series(source, { x, points: POINTS });
    if (row.isSelfPlay) answers[`${path}/league`] = await readLeagueInfo(data.runs, source);
    if (row.hasJobs) answers[`${path}/jobs`] = await readJobs(data.runs, source);
    Object.assign(answers, await collectEpisodes(data, source, path));
  }
  answers["/api/runs"] = { root: "report", runs: rows, sweeps, isReport: true } satisfies RunList;
  return inlinePage(page, { version: 1, createdMs: Date.now(), answers });
}

async function findReportedRuns(folders: readonly string[]) {
  const runs: ReportedRun[] = [];
  const sweeps: SweepRow[] = [];
  for (const folder of folders) {
    const data = new DashboardData(await RunsFolder.open(folder));
    const source = data.runs.only;
    if (source === undefined) throw noRunError(folder);
    const name = uniqueName(source, [...runs.map(({ id }) => id), ...sweeps.map(({ id }) => id)]);
    const rename = (id: string) => name + id.slice(source.length);
    if ((await data.runs.readJson(source, "sweep.json").catch(() => undefined)) !== undefined) {
      const sweep = await readSweep(data.runs, source);
      const trials = sweep.trials.map((trial) => ({ ...trial, runs: trial.runs.map(rename) }));
      sweeps.push({ ...sweep, id: name, trials });
      for (const id of sweep.trials.flatMap((trial) => trial.runs)) runs.push({ data, source: id, id: rename(id) });
      continue;
    }
    runs.push({ data, source, id: name });
  }
  return { runs, sweeps };
}

function noRunError(folder: string): LlamaGymError {
  return new LlamaGymError("FILE_NOT_FOUND", `There is no run in ${folder}. Name the folders of runs or sweeps.`);
}

function uniqueName(name: string, taken: readonly string[]): string {
  for (let i = 2, candidate = name; ; candidate = `${name}-${i++}`) if (!taken.includes(candidate)) return candidate;
}

/**
 * Returns the answers about a run's recording: episodes over the whole run, and the groups of its
 * last update.
 */
async function collectEpisodes(data: DashboardData, source: string, path: string): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {};
  const list = await data.rollouts.list(source, { limit: 1_000 });
  const starts = list.episodes.filter(({ startsEpisode }) => startsEpisode);
  const size = Math.max(1, Math.ceil(starts.length / MAX_EPISODES));
  let remaining = MAX_EPISODE_CHARS;
  const shown: EpisodeDetail[] = [];
  for (const { id } of starts.filter((_, i) => i % size === 0)) {
    // A chunk that cannot be read is left out, as the page would.
    const episode = await data.rollouts.episode(source, id).catch(() => undefined);
    const length = JSON.stringify(episode ?? null).length;
    if (episode === undefined || length > remaining) continue;
    remaining -= length;
    shown.push(episode);
    answers[`${path}/episodes/${encodeURIComponent(id)}`] = episode;
  }
  const groups = await data.rollouts.groups(source).catch(() => undefined);
  if (groups !== undefined && JSON.stringify(groups).length <= Math.max(remaining, MAX_EPISODE_CHARS / 2)) {
    answers[`${path}/groups`] = { ...groups, steps: groups.groups.length === 0 ? [] : [groups.step] };
    answers[`${path}/groups?step=${groups.step}`] = answers[`${path}/groups`];
  } else answers[`${path}/groups`] = { step: 0, steps: [], groups: [] };
  const rows = shown.map(({ row }) => row);
  const steps = [...new Set(rows.map(({ step }) => step))].sort((a, b) => a - b);
  answers[`${path}/episodes`] = { ...list, episodes: rows, total: rows.length, steps } satisfies EpisodeList;
  return answers;
}

/** Puts the page's script and style sheet, and the data, into its HTML. */
async function inlinePage(folder: string, report: ReportData): Promise<string> {
  const html = await readFile(join(folder, "index.html"), "utf8").catch(() => undefined);
  const script = /<script\b[^>]*\bsrc="\.?\/?([^"]+)"[^>]*><\/script>/.exec(html ?? "");
  if (html === undefined || script === null)
    throw new LlamaGymError(
      "FILE_NOT_FOUND",
      "The dashboard's page is not built. Run npm run build in the repository.",
    );
  const style = /<link\b[^>]*\brel="stylesheet"[^>]*\bhref="\.?\/?([^"]+)"[^>]*>/.exec(html);
  // An end tag within a string would end the element.
  const code = (await readFile(join(folder, script[1]), "utf8")).replaceAll(/<\/(script)/gi, "<\\/$1");
  const css = style === null ? "" : await readFile(join(folder, style[1]), "utf8");
  const data = JSON.stringify(report).replaceAll("<", "\\u003c");
  const policy = `default-src 'none'; script-src ${hash(code)}; style-src ${hash(css)}; img-src data: blob:`;
  const elements = [
    `<meta http-equiv="Content-Security-Policy" content="${policy}" />`,
    `<style>${css}</style>`,
    `<script type="application/json" id="report">${data}</script>`,
    `<script type="module">${code}</script>`,
  ];
  const withoutFiles = [script[0], style?.[0] ?? "", /<link\b[^>]*\brel="icon"[^>]*>/.exec(html)?.[0] ?? ""].reduce(
    (text, element) => (element === "" ? text : text.replace(element, () => "")),
    html,
  );
  return withoutFiles.replace("</head>", () => `${elements.join("\n")}\n</head>`);
}

function hash(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}
