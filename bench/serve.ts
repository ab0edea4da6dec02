import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Answer, Parameters, Request, Result } from "./framework.js";

/** The process's largest resident set so far, in bytes. */
function peakResidentBytes(): number {
  try {
    const match = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"));
    if (match) return Number(match[1]) * 1024;
  } catch {
    // Only Linux has the file.
  }
  return process.resourceUsage().maxRSS * 1024;
}

/** Seconds of each of `repeat` calls, one after the other. */
export async function timeRuns(repeat: number, work: () => Promise<void> | void): Promise<number[]> {
  const seconds: number[] = [];
  for (let run = 0; run < repeat; run++) {
    const start = performance.now();
    await work();
    seconds.push((performance.now() - start) / 1000);
  }
  return seconds;
}

/**
 * Our side of a bench: answers each request line on standard input with one line on standard
 * output, until the input ends. What the work prints goes to standard error.
 */
export async function serve<P extends Parameters>(handle: (request: Request<P>) => Promise<Result>): Promise<void> {
  console.log = console.error;
  const answer = (line: Answer) => process.stdout.write(`${JSON.stringify(line)}\n`);
  for await (const line of createInterface({ input: process.stdin })) {
    if (line.trim() === "") continue;
    try {
      const result = await handle(JSON.parse(line) as Request<P>);
      answer({ ...result, peak_rss: peakResidentBytes() });
    } catch (error) {
      answer({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  }
}
