import { fork, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Driver, Outcome, Totals, WorkerMessage } from "./driver.js";

/** A mutant that the library neither accepts nor refuses with a code. */
export interface Finding {
  readonly mutant: number;
  readonly outcome: Outcome;
  readonly detail: string;
  readonly totals?: Totals;
}

/** Number of mutants by outcome. */
export type Counts = Record<Outcome, number>;

/** Heap limit of a worker process, below the limit on its memory. */
const HEAP_MEGABYTES = 1536;
const START_TIMEOUT_MS = 100_000;
/**
 * A mutant that waits, or whose process gets no processor time on a busy machine, may take this
 * many time limits.
 */
const IDLE_FACTOR = 6;

export function emptyCounts(): Counts {
  return { accepted: 0, refused: 0, raw: 0, hung: 0, crashed: 0, memory: 0 };
}

/**
 * Tries mutants [first, first + count) of a seed in worker processes; a new one replaces a process
 * that hangs or ends.
 */
export async function tryMutants(
  name: string,
  driver: Driver,
  { seed, first, count }: { seed: number; first: number; count: number },
  onOutcome: (finding: Finding) => void,
): Promise<void> {
  for (let next = first; next < first + count;) {
    const scratch = await mkdtemp(join(tmpdir(), `fuzz-${name}-`));
    const child = fork(fileURLToPath(new URL("worker.js", import.meta.url)), [name, scratch], {
      execArgv: [`--max-old-space-size=${HEAP_MEGABYTES}`],
      silent: true,
    });
    const request = { seed, first: next, count: first + count - next };
    next = await watch(child, driver.timeLimitMs, request, onOutcome);
    await rm(scratch, { recursive: true, force: true, maxRetries: 5 });
  }
}

/**
 * Reads the processor time of a process, where the system has /proc; ticks are hundredths of a
 * second.
 */
function readCpuMs(pid: number | undefined): number | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
    return 10 * (Number(fields[11]) + Number(fields[12]));
  } catch {
    return undefined;
  }
}

/** Runs a batch in a child process; returns the first mutant that it has not tried. */
function watch(
  child: ChildProcess,
  timeLimitMs: number,
  request: { seed: number; first: number; count: number },
  onOutcome: (finding: Finding) => void,
): Promise<number> {
  return new Promise((resolve, reject) => {
    let mutant = request.first;
    let isReady = false;
    let isHung = false;
    let errors = "";
    let cpuAtStart: number | undefined;
    let timer: NodeJS.Timeout;
    const watchTime = (limitMs: number) => {
      clearTimeout(timer);
      const start = performance.now();
      cpuAtStart = readCpuMs(child.pid);
      const check = () => {
        const usedMs = (readCpuMs(child.pid) ?? Infinity) - (cpuAtStart ?? 0);
        isHung = usedMs >= limitMs || performance.now() - start >= IDLE_FACTOR * limitMs;
        if (isHung) child.kill("SIGKILL");
        else timer = setTimeout(check, limitMs / 4);
      };
      timer = setTimeout(check, limitMs);
    };
    watchTime(START_TIMEOUT_MS);
    child.stdout!.resume();
    child.stderr!.on("data", (data: Buffer) => (errors = (errors + data.toString()).slice(-2000)));
    child.on("message", (message: WorkerMessage) => {
      watchTime(timeLimitMs);
      if (message.type === "ready") {
        isReady = true;
        child.send(request);
      } else if (message.type === "trying") {
        mutant = message.mutant;
      } else {
        onOutcome(message);
        mutant = message.mutant + 1;
        if (mutant === request.first + request.count || message.outcome === "memory") child.disconnect();
      }
    });
    child.on("exit", (status, signal) => {
      clearTimeout(timer);
      if (!isReady) {
        reject(new Error(`The worker did not start (status ${status}, signal ${signal}).\n${errors}`));
        return;
      }
      if (mutant === request.first + request.count || (status === 0 && !isHung)) return resolve(mutant);
      const detail = isHung ? `no answer in ${timeLimitMs / 1000} s` : `status ${status}, signal ${signal}: ${errors}`;
      onOutcome({ mutant, outcome: isHung ? "hung" : "crashed", detail });
      resolve(mutant + 1);
    });
  });
}
