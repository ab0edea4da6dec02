/** Upper bounds of the histogram of request times, in seconds. */
const BUCKETS = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300];

interface Histogram {
  readonly counts: number[];
  sum: number;
}

/** Counts of a server, in Prometheus's text format. */
export class ServerMetrics {
  /** Requests that are being answered. */
  running = 0;
  private readonly requests = new Map<string, number>();
  private readonly tokens = { prompt: 0, cached: 0, completion: 0 };
  private readonly times: Histogram = { counts: BUCKETS.map(() => 0), sum: 0 };
  private total = 0;
  private readonly work = new Map<string, number>();

  /** Counts a finished request. */
  countRequest(route: string, status: number, seconds: number): void {
    const labels = `{route="${route}",status="${status}"}`;
    this.requests.set(labels, (this.requests.get(labels) ?? 0) + 1);
    this.total++;
    this.times.sum += seconds;
    BUCKETS.forEach((bound, i) => {
      if (seconds <= bound) this.times.counts[i]++;
    });
  }

  countTokens({ prompt, cached, completion }: { prompt: number; cached: number; completion: number }): void {
    this.tokens.prompt += prompt;
    this.tokens.cached += cached;
    this.tokens.completion += completion;
  }

  /** Counts work that was done for requests, by its kind. */
  countWork(kind: string): void {
    const label = `{kind="${kind}"}`;
    this.work.set(label, (this.work.get(label) ?? 0) + 1);
  }

  /** Returns the metrics as Prometheus reads them. */
  format(): string {
    const { tokens, times, total } = this;
    const metric = (name: string, type: string, help: string, lines: readonly (readonly [string, number])[]) =>
      [
        `# HELP llamagym_${name} ${help}`,
        `# TYPE llamagym_${name} ${type}`,
        ...lines.map(([suffix, value]) => `llamagym_${name}${suffix} ${value}`),
      ].join("\n");
    const buckets = BUCKETS.map((bound, i) => [`_bucket{le="${bound}"}`, times.counts[i]] as const);
    return `${[
      metric("requests_total", "counter", "Finished requests.", [...this.requests]),
      metric("requests_running", "gauge", "Requests that are being answered.", [["", this.running]]),
      metric("prompt_tokens_total", "counter", "Tokens of prompts.", [["", tokens.prompt]]),
      metric("cached_prompt_tokens_total", "counter", "Tokens of prompts whose keys and values were reused.", [
        ["", tokens.cached],
      ]),
      metric("completion_tokens_total", "counter", "Sampled tokens.", [["", tokens.completion]]),
      ...(this.work.size > 0
        ? [metric("work_total", "counter", "Work done for requests, by kind.", [...this.work])]
        : []),
      metric("request_seconds", "histogram", "Time from a request to the start of its response.", [
        ...buckets,
        ['_bucket{le="+Inf"}', total],
        ["_sum", times.sum],
        ["_count", total],
      ]),
    ].join("\n")}\n`;
  }
}
