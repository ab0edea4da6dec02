import { fork, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Driver, Outcome, WorkerMessage } from "./driver.js";

/** A mutant that the library neither accepts nor refuses with a code. */
export interface Finding {
  readonly mutant: number;
  readonly outcome: Outcome;
  readonly detail: string;
}

/** Number of mutants by outcome. */
export type Counts = Record<Outcome, number>;

/** Heap limit of a worker process, below the limit on its memory. */
const HEAP_MEGABYTES = 1536;
const START_TIMEOUT_MS = 300_000;

export function emptyCounts(): Counts {
  return { accepted: 0, refused: 0, raw: 0, hung: 0, crashed: 0, memory: 0 };
}

/** Tries mutants [first, first + count) of a seed in worker processes; a new one replaces a process that hangs or ends. */
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
    const kill = () => {
      isHung = true;
      child.kill("SIGKILL");
    };
    let timer = setTimeout(kill, START_TIMEOUT_MS);
    child.stdout!.resume();
    child.stderr!.on("data", (data: Buffer) => (errors = (errors + data.toString()).slice(-2000)));
    child.on("message", (message: WorkerMessage) => {
      clearTimeout(timer);
      timer = setTimeout(kill, timeLimitMs);
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
