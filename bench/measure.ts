import { existsSync } from "node:fs";
import { join } from "node:path";
import { computeRatios, figureRules } from "./figures.js";
import type { Bench, BenchCase, Context, Measurement, Report } from "./framework.js";
import { describeMachine } from "./machine.js";
import { Side, type SideCommand } from "./side.js";

export type MeasureOptions = {
  root: string;
  runs: number;
  threads: number;
  /** Measure only this side. */
  side?: "ours" | "peers";
  /** Measure only these cases. */
  cases?: string[];
  verbose: boolean;
  progress: (text: string) => void;
};

type RunnableSide = { name: string; command: SideCommand };

function pythonPath(root: string, environment: string): string {
  const relativePath = process.platform === "win32" ? ["Scripts", "python.exe"] : ["bin", "python"];
  return join(root, "bench", "peers", environment, ...relativePath);
}

/** The environment of peers that Node runs. */
const NODE_PEERS = "node";

const nodePeersPath = (root: string) => join(root, "bench", "peers", NODE_PEERS);

/** The sides that can be run here: ours first, then each installed peer. */
async function findSides(bench: Bench, options: MeasureOptions, notes: string[]): Promise<RunnableSide[]> {
  const context: Context = { root: options.root, threads: options.threads };
  const installed = Object.entries(bench.peers).filter(([name, peer]) => {
    if (options.side === "ours") return false;
    const isNode = peer.environment === NODE_PEERS;
    const installedFile = isNode
      ? join(nodePeersPath(options.root), "node_modules")
      : pythonPath(options.root, peer.environment);
    if (existsSync(installedFile)) return true;
    const flags: Record<string, string> = {
      [NODE_PEERS]: " -- --node",
      ".venv-llamagym": " -- --llamagym",
      ".venv-skyrl": " -- --skyrl",
    };
    const flag = flags[peer.environment] ?? "";
    notes.push(`peer ${name} is not installed and was not measured: npm run bench:setup${flag}`);
    return false;
  });
  const names = installed.map(([name]) => name);
  await bench.prepare?.(context, names);
  const sides: RunnableSide[] = installed.map(([name, peer]) => ({
    name,
    command: {
      program: peer.environment === NODE_PEERS ? process.execPath : pythonPath(options.root, peer.environment),
      arguments: [join(options.root, "bench", "peers", peer.script), ...(peer.arguments?.(context) ?? [])],
    },
  }));
  if (options.side === "peers") return sides;
  const module = join(options.root, "bench", ".build", "bench", bench.ours.module);
  if (!existsSync(module)) throw new Error(`our side of the bench ${bench.name} is missing: ${bench.ours.module}`);
  const ours = { program: process.execPath, arguments: [module, ...(bench.ours.arguments?.(context) ?? [])] };
  return [{ name: "ours", command: ours }, ...sides];
}

/** The parties' processes, started when first needed. */
class Processes {
  readonly #running = new Map<string, Side>();
  readonly #verbose: boolean;

  constructor(verbose: boolean) {
    this.#verbose = verbose;
  }

  async ask(side: RunnableSide, benchCase: BenchCase, repeat: number): Promise<Measurement> {
    const request = { ...benchCase.parameters, case: benchCase.name, repeat };
    if (benchCase.freshProcess) {
      const process = new Side(side.name, side.command, this.#verbose);
      return process.request(request).finally(() => process.close());
    }
    let process = this.#running.get(side.name);
    if (!process) {
      process = new Side(side.name, side.command, this.#verbose);
      this.#running.set(side.name, process);
    }
    return process.request(request);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running.values()].map((side) => side.close()));
  }
}

/** One case on every party, in turn: each warms up, then ours, peer, ours, peer, ... */
async function measureCase(
  benchCase: BenchCase,
  sides: RunnableSide[],
  processes: Processes,
  options: MeasureOptions,
): Promise<Map<string, Measurement[]>> {
  const answers = new Map<string, Measurement[]>(sides.map(({ name }) => [name, []]));
  const warmup = benchCase.warmup ?? 1;
  if (warmup > 0) {
    options.progress(`${benchCase.name}: warming up`);
    for (const side of sides) await processes.ask(side, benchCase, warmup);
  }
  const runs = Math.min(options.runs, benchCase.maxRuns ?? options.runs);
  for (let run = 1; run <= runs; run++) {
    options.progress(`${benchCase.name}: run ${run} of ${runs}`);
    for (const side of sides) {
      answers.get(side.name)?.push(await processes.ask(side, benchCase, benchCase.repeat ?? 1));
    }
  }
  return answers;
}

/**
 * Puts one party's answers to a case into the report: the case's figures, and the values that
 * belong to no figure.
 */
function record(report: Report, benchCase: BenchCase, side: string, answers: Measurement[]): void {
  const last = answers.at(-1);
  if (!last) return;
  const figures = side === "ours" ? report.ours : report.peers[side];
  const rules = figureRules(benchCase);
  for (const { name, samples, reduce } of rules) {
    const values = answers.flatMap(samples);
    figures[name] = reduce(values, last.count);
    (report.samples[name] ??= {})[side] = values;
  }
  for (const [key, value] of Object.entries(last.values ?? {})) {
    if (rules.every(({ name }) => name !== key)) figures[`${benchCase.name}/${key}`] = value;
  }
}

function selectCases(bench: Bench, requested: string[] | undefined): BenchCase[] {
  const unknown = requested?.find((name) => bench.cases.every((benchCase) => benchCase.name !== name));
  if (unknown === undefined) return bench.cases.filter(({ name }) => requested?.includes(name) ?? true);
  const known = bench.cases.map(({ name }) => name).join(", ");
  throw new Error(`bench ${bench.name} has no case "${unknown}"; it has ${known}`);
}

/**
 * Measures a bench's cases on our side and on every installed peer, alternately, each side in its
 * own process. Throws when a side fails.
 */
export async function measure(bench: Bench, options: MeasureOptions): Promise<Report> {
  const cases = selectCases(bench, options.cases);
  const notes: string[] = [];
  const rules = cases.flatMap(figureRules);
  const sides = await findSides(bench, options, notes);
  if (sides.length === 0) throw new Error(notes.join("\n"));
  const report: Report = {
    name: bench.name,
    machine: describeMachine(),
    ours: {},
    peers: Object.fromEntries(sides.filter(({ name }) => name !== "ours").map(({ name }) => [name, {}])),
    ratios: {},
    units: Object.fromEntries(rules.map(({ name, unit }) => [name, unit])),
    samples: {},
    notes,
  };
  const processes = new Processes(options.verbose);
  try {
    for (const benchCase of cases) {
      const participants = sides.filter(
        ({ name }) => name === "ours" || (benchCase.peers?.includes(name) ?? !bench.peers[name].optIn),
      );
      for (const [side, answers] of await measureCase(benchCase, participants, processes, options)) {
        record(report, benchCase, side, answers);
      }
    }
  } finally {
    await processes.close();
  }
  Object.assign(report.ours, bench.derive?.(report.ours, report.peers));
  const compared = Object.entries(report.peers).filter(([name]) => bench.peers[name].ratio !== false);
  report.ratios = computeRatios(rules, report.ours, Object.fromEntries(compared));
  return report;
}
