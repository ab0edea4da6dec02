import { parseArgs } from "node:util";
import { drivers } from "./drivers/index.js";
import { emptyCounts, tryMutants, type Counts, type Finding } from "./try-mutants.js";

const USAGE = `Usage: npm run fuzz -- [--minutes N | --mutants N] [--only NAME,...] [--seed S] [--mutant I]

Tries mutants of untrusted input and reports those that hang, crash, exhaust the memory or end in an error without a code.
--minutes   time for all drivers together (default 5)
--mutants   number of mutants of each driver instead
--only      drivers: ${Object.keys(drivers).join(", ")}
--seed      seed of the mutants (default 1)
--mutant    tries this one only, as a report names it`;

/** Mutants of a driver with share 1 before the next driver takes its turn. */
const BATCH_SIZE = 500;
/** Printed findings of one kind. */
const MAX_REPORTS = 3;

interface FuzzOptions {
  readonly minutes: number;
  readonly mutants: number | undefined;
  readonly names: readonly string[];
  readonly seed: number;
  readonly mutant: number | undefined;
}

function readOptions(): FuzzOptions {
  const text = { type: "string" } as const;
  const { values } = parseArgs({ options: { minutes: text, mutants: text, only: text, seed: text, mutant: text } });
  const names = values.only?.split(",") ?? Object.keys(drivers);
  const unknown = names.find((name) => !Object.hasOwn(drivers, name));
  if (unknown !== undefined) throw new Error(`There is no driver "${unknown}".`);
  const number = (value: string | undefined) => {
    if (value === undefined || Number(value) >= 0) return value === undefined ? undefined : Number(value);
    throw new Error(`Expected a number, got "${value}".`);
  };
  const {
    minutes = 5,
    mutants,
    seed = 1,
    mutant,
  } = {
    minutes: number(values.minutes),
    mutants: number(values.mutants),
    seed: number(values.seed),
    mutant: number(values.mutant),
  };
  return { minutes, mutants, names, seed, mutant };
}

/** Prints the first findings of a kind with the commands that reproduce them. */
class Reporter {
  private readonly reported = new Map<string, number>();

  report(name: string, seed: number, { mutant, outcome, detail }: Finding): void {
    const [message, ...stack] = detail.split("\n");
    const kind = `${name} ${outcome} ${message.slice(0, 60).replaceAll(/\d+/g, "0")}`;
    const count = this.reported.get(kind) ?? 0;
    this.reported.set(kind, count + 1);
    if (count >= MAX_REPORTS) return;
    console.log(`${name} ${outcome}: npm run fuzz -- --only ${name} --seed ${seed} --mutant ${mutant}`);
    for (const line of [message, ...(count === 0 ? stack.slice(0, 8) : [])]) console.log(`  ${line.slice(0, 300)}`);
  }
}

function printCounts(counts: ReadonlyMap<string, Counts>, totals: ReadonlyMap<string, number>): void {
  for (const [name, total] of totals) console.log(`${name}: ${total.toLocaleString("en-US")}`);
  const columns = ["tried", "refused", "accepted", "hung", "crashed", "memory", "raw"] as const;
  console.log(["driver".padEnd(16), ...columns.map((name) => name.padStart(9))].join(""));
  for (const [name, count] of counts) {
    const tried = Object.values(count).reduce((sum, value) => sum + value, 0);
    const row = columns.map((column) => String(column === "tried" ? tried : count[column]).padStart(9));
    console.log([name.padEnd(16), ...row].join(""));
  }
}

async function fuzz({ minutes, mutants, names, seed, mutant }: FuzzOptions): Promise<boolean> {
  const counts = new Map(names.map((name) => [name, emptyCounts()]));
  /** "sampler tokens" and the like. */
  const totals = new Map<string, number>();
  const next = new Map(names.map((name) => [name, mutant ?? 0]));
  const deadline = performance.now() + minutes * 60_000;
  const reporter = new Reporter();
  let isClean = true;
  const runBatch = async (name: string, count: number) => {
    const first = next.get(name)!;
    next.set(name, first + count);
    await tryMutants(name, drivers[name], { seed, first, count }, (finding) => {
      counts.get(name)![finding.outcome]++;
      for (const [unit, total] of Object.entries(finding.totals ?? {}))
        totals.set(`${name} ${unit}`, (totals.get(`${name} ${unit}`) ?? 0) + total);
      if (mutant !== undefined) console.log(`${finding.outcome}: ${finding.detail}`);
      if (["accepted", "refused"].includes(finding.outcome)) return;
      isClean = false;
      reporter.report(name, seed, finding);
    });
  };
  if (mutant !== undefined || mutants !== undefined) {
    for (const name of names) await runBatch(name, mutant === undefined ? mutants! : 1);
  } else {
    while (performance.now() < deadline) {
      for (const name of names) {
        if (performance.now() < deadline)
          await runBatch(name, Math.max(1, Math.round(BATCH_SIZE * drivers[name].share)));
      }
      printCounts(counts, totals);
    }
  }
  printCounts(counts, totals);
  return isClean;
}

async function main(): Promise<number> {
  try {
    return (await fuzz(readOptions())) ? 0 : 1;
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`);
    return 2;
  }
}

process.exitCode = await main();
