import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const SAMPLE_INTERVAL_MS = 100;

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Largest memory of a process in bytes. PSS counts a page that is mapped several times once. */
export interface PeakMemory {
  readonly peakPss: number;
  readonly peakRss: number;
}

/**
 * Samples the memory of a process until it ends; `take` returns the peaks since the last call.
 * Linux only.
 */
class MemorySampler {
  private peaks = { peakPss: 0, peakRss: 0 };
  private readonly timer: NodeJS.Timeout;

  constructor(private readonly pid: number) {
    this.timer = setInterval(() => this.sample(), SAMPLE_INTERVAL_MS);
  }

  sample(): void {
    try {
      const text = readFileSync(`/proc/${this.pid}/smaps_rollup`, "utf8");
      const read = (field: string) => 1024 * Number(new RegExp(`^${field}:\\s+(\\d+)`, "mu").exec(text)?.[1] ?? 0);
      this.peaks.peakPss = Math.max(this.peaks.peakPss, read("Pss"));
      this.peaks.peakRss = Math.max(this.peaks.peakRss, read("Rss"));
    } catch {
      // The process has just ended.
    }
  }

  take(): PeakMemory {
    this.sample();
    const taken = this.peaks;
    this.peaks = { peakPss: 0, peakRss: 0 };
    return taken;
  }

  stop(): void {
    clearInterval(this.timer);
  }
}

/**
 * Runs a program and measures its peak memory. For each line of its standard output, `onLine`
 * receives the peaks since the previous line. @throws if the program fails.
 */
export async function runMeasured(
  program: string,
  args: readonly string[],
  onLine: (line: string, peaks: PeakMemory) => void,
): Promise<PeakMemory> {
  const child: ChildProcess = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  // A signal would end this process without the event.
  const end = () => process.exit(1);
  for (const signal of SIGNALS) process.once(signal, end);
  const sampler = new MemorySampler(child.pid!);
  let total: PeakMemory = { peakPss: 0, peakRss: 0 };
  const take = (): PeakMemory => {
    const peaks = sampler.take();
    total = {
      peakPss: Math.max(total.peakPss, peaks.peakPss),
      peakRss: Math.max(total.peakRss, peaks.peakRss),
    };
    return peaks;
  };
  const lines = createInterface({ input: child.stdout! }).on("line", (line) => onLine(line, take()));
  const status = await new Promise<string>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(String(signal ?? code)));
  });
  lines.close();
  sampler.stop();
  process.removeListener("exit", kill);
  for (const signal of SIGNALS) process.removeListener(signal, end);
  take();
  if (status !== "0") throw new Error(`${program} ${args.join(" ")} ended with ${status}`);
  return total;
}
