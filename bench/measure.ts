import { existsSync } from "node:fs";
import { join } from "node:path";
import { ratiosOf, rulesOf } from "./figures.js";
import type { Bench, BenchCase, Context, Measured, Report } from "./framework.js";
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

type Party = { name: string; command: SideCommand };

function pythonOf(root: string, environment: string): string {
  const place = process.platform === "win32" ? ["Scripts", "python.exe"] : ["bin", "python"];
  return join(root, "bench", "peers", environment, ...place);
}

/** The sides that can be run here: ours first, then each installed peer. */
async function findParties(bench: Bench, options: MeasureOptions, notes: string[]): Promise<Party[]> {
  const context: Context = { root: options.root, threads: options.threads };
  const installed = Object.entries(bench.peers).filter(([name, peer]) => {
    if (options.side === "ours") return false;
    if (existsSync(pythonOf(options.root, peer.environment))) return true;
    const flag = peer.environment === ".venv-llamagym" ? " -- --llamagym" : "";
    notes.push(`peer ${name} is not installed and was not measured: npm run bench:setup${flag}`);
    return false;
  });
  const names = installed.map(([name]) => name);
  await bench.prepare?.(context, names);
  const parties: Party[] = installed.map(([name, peer]) => ({
    name,
    command: {
      program: pythonOf(options.root, peer.environment),
      arguments: [join(options.root, "bench", "peers", peer.script), ...(peer.arguments?.(context) ?? [])],
    },
  }));
  if (options.side === "peers") return parties;
  const module = join(options.root, "bench", ".build", "bench", bench.ours.module);
  if (!existsSync(module)) throw new Error(`our side of the bench ${bench.name} is missing: ${bench.ours.module}`);
  const ours = { program: process.execPath, arguments: [module, ...(bench.ours.arguments?.(context) ?? [])] };
  return [{ name: "ours", command: ours }, ...parties];
}

/** The parties' processes, started when first needed. */
class Processes {
  readonly #running = new Map<string, Side>();
  readonly #verbose: boolean;

  constructor(verbose: boolean) {
    this.#verbose = verbose;
  }

  async ask(party: Party, benchCase: BenchCase, repeat: number): Promise<Measured> {
    const request = { ...benchCase.parameters, case: benchCase.name, repeat };
    if (benchCase.fresh) {
      const side = new Side(party.name, party.command, this.#verbose);
      return side.request(request).finally(() => side.close());
    }
    let side = this.#running.get(party.name);
    if (!side) {
      side = new Side(party.name, party.command, this.#verbose);
      this.#running.set(party.name, side);
    }
    return side.request(request);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running.values()].map((side) => side.close()));
  }
}

/** One case on every party, in turn: each warms up, then ours, peer, ours, peer, ... */
async function measureCase(
  benchCase: BenchCase,
  parties: Party[],
  processes: Processes,
  options: MeasureOptions,
): Promise<Map<string, Measured[]>> {
  const answers = new Map<string, Measured[]>(parties.map(({ name }) => [name, []]));
  const warmup = benchCase.warmup ?? 1;
  if (warmup > 0) {
    options.progress(`${benchCase.name}: warming up`);
    for (const party of parties) await processes.ask(party, benchCase, warmup);
  }
  const runs = Math.min(options.runs, benchCase.maxRuns ?? options.runs);
  for (let run = 1; run <= runs; run++) {
    options.progress(`${benchCase.name}: run ${run} of ${runs}`);
    for (const party of parties) {
      answers.get(party.name)?.push(await processes.ask(party, benchCase, benchCase.repeat ?? 1));
    }
  }
  return answers;
}

/** Puts one party's answers to a case into the report: the case's figures, and the values that belong to no figure. */
function record(report: Report, benchCase: BenchCase, party: string, answers: Measured[]): void {
  const last = answers.at(-1);
  if (!last) return;
  const figures = party === "ours" ? report.ours : report.peers[party];
  const rules = rulesOf(benchCase);
  for (const { name, samples, reduce } of rules) {
    const values = answers.flatMap(samples);
    figures[name] = reduce(values, last.count);
    (report.samples[name] ??= {})[party] = values;
  }
  for (const [key, value] of Object.entries(last.values ?? {})) {
    if (rules.every(({ name }) => name !== key)) figures[`${benchCase.name}/${key}`] = value;
  }
}

function selectCases(bench: Bench, wanted: string[] | undefined): BenchCase[] {
  const unknown = wanted?.find((name) => bench.cases.every((benchCase) => benchCase.name !== name));
  if (unknown === undefined) return bench.cases.filter(({ name }) => wanted?.includes(name) ?? true);
  const known = bench.cases.map(({ name }) => name).join(", ");
  throw new Error(`bench ${bench.name} has no case "${unknown}"; it has ${known}`);
}

/**
 * Measures a bench's cases on our side and on every installed peer, alternately, each side in a process of its own.
 * Throws when a side fails.
 */
export async function measure(bench: Bench, options: MeasureOptions): Promise<Report> {
  const cases = selectCases(bench, options.cases);
  const notes: string[] = [];
  const rules = cases.flatMap(rulesOf);
  const parties = await findParties(bench, options, notes);
  if (parties.length === 0) throw new Error(notes.join("\n"));
  const report: Report = {
    name: bench.name,
    machine: describeMachine(),
    ours: {},
    peers: Object.fromEntries(parties.filter(({ name }) => name !== "ours").map(({ name }) => [name, {}])),
    ratios: {},
    units: Object.fromEntries(rules.map(({ name, unit }) => [name, unit])),
    samples: {},
    notes,
  };
  const processes = new Processes(options.verbose);
  try {
    for (const benchCase of cases) {
      const taking = parties.filter(({ name }) => name === "ours" || !benchCase.oursOnly);
      for (const [party, answers] of await measureCase(benchCase, taking, processes, options)) {
        record(report, benchCase, party, answers);
      }
    }
  } finally {
    await processes.close();
  }
  Object.assign(report.ours, bench.derive?.(report.ours, report.peers));
  const compared = Object.entries(report.peers).filter(([name]) => bench.peers[name].ratio !== false);
  report.ratios = ratiosOf(rules, report.ours, Object.fromEntries(compared));
  return report;
}
