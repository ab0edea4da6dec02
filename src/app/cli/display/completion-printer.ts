import type { Completion } from "../../../generation/index.js";
import type { Reporter } from "../reporter.js";

export interface CompletionPrinterOptions {
  readonly json: boolean;
  readonly stats: boolean;
  readonly loadSeconds: number;
}

/** Streams completions to standard output, or prints each as a line of JSON. */
export class CompletionPrinter {
  constructor(
    private readonly reporter: Reporter,
    private readonly options: CompletionPrinterOptions,
  ) {}

  /** Prints a completion as it is generated and returns it. */
  async print(stream: AsyncGenerator<string, Completion>): Promise<Completion> {
    const started = performance.now();
    let firstTokenAt: number | undefined;
    let lastPiece = "";
    let result = await stream.next();
    for (; result.done !== true; result = await stream.next()) {
      firstTokenAt ??= performance.now();
      lastPiece = result.value;
      if (!this.options.json) this.reporter.writeCompletion(result.value);
    }
    const completion = result.value;
    const finished = performance.now();
    const seconds = {
      load: this.options.loadSeconds,
      firstToken: ((firstTokenAt ?? finished) - started) / 1000,
      total: (finished - started) / 1000,
    };
    if (this.options.json) this.reporter.print(JSON.stringify(toJson(completion, seconds)));
    else if (!lastPiece.endsWith("\n")) this.reporter.writeCompletion("\n");
    if (this.options.stats) this.reporter.info(formatStats(completion, seconds));
    return completion;
  }
}

interface Timings {
  readonly load: number;
  readonly firstToken: number;
  readonly total: number;
}

function computeTokensPerSecond({ tokens }: Completion, { total, firstToken }: Timings): number | undefined {
  return tokens.length > 1 && total > firstToken ? (tokens.length - 1) / (total - firstToken) : undefined;
}

function toJson(completion: Completion, seconds: Timings): Record<string, unknown> {
  const { text, finishReason, choice, promptTokens, tokens, logProbs } = completion;
  return {
    text,
    finishReason,
    choice,
    promptTokens: promptTokens.length,
    tokens,
    logProbs,
    seconds,
    tokensPerSecond: computeTokensPerSecond(completion, seconds),
  };
}

function formatStats(completion: Completion, seconds: Timings): string {
  const perSecond = computeTokensPerSecond(completion, seconds);
  return [
    `prompt ${completion.promptTokens.length} tokens, completion ${completion.tokens.length} tokens (${completion.finishReason})`,
    `loaded in ${seconds.load.toFixed(2)} s, first token after ${seconds.firstToken.toFixed(2)} s`,
    ...(perSecond === undefined ? [] : [`${perSecond.toFixed(1)} tokens/s`]),
  ].join("; ");
}
