import type { ModelReply } from "../generation/results.js";
import { print } from "./output.js";

export interface PrinterOptions {
  readonly json: boolean;
  readonly stats: boolean;
  readonly loadSeconds: number;
}

/** Prints replies as they come, or each as a line of JSON. */
export class ReplyPrinter {
  constructor(private readonly options: PrinterOptions) {}

  /** Prints a reply to its end and gives it. */
  async print(stream: AsyncGenerator<string, ModelReply>): Promise<ModelReply> {
    const started = performance.now();
    let first: number | undefined;
    let last = "";
    let result = await stream.next();
    for (; result.done !== true; result = await stream.next()) {
      first ??= performance.now();
      last = result.value;
      if (!this.options.json) process.stdout.write(result.value);
    }
    const reply = result.value;
    const ended = performance.now();
    const seconds = {
      load: this.options.loadSeconds,
      firstToken: ((first ?? ended) - started) / 1000,
      total: (ended - started) / 1000,
    };
    if (this.options.json) print(JSON.stringify(asJson(reply, seconds)));
    else if (!last.endsWith("\n")) print("");
    if (this.options.stats) process.stderr.write(`${describe(reply, seconds)}\n`);
    return reply;
  }
}

interface Seconds {
  readonly load: number;
  readonly firstToken: number;
  readonly total: number;
}

/** Tokens per second after the first. */
function rate({ tokens }: ModelReply, { total, firstToken }: Seconds): number | undefined {
  return tokens.length > 1 && total > firstToken ? (tokens.length - 1) / (total - firstToken) : undefined;
}

function asJson(reply: ModelReply, seconds: Seconds): Record<string, unknown> {
  const { text, finishReason, choice, promptTokens, tokens, logProbs } = reply;
  return {
    text,
    finishReason,
    choice,
    promptTokens: promptTokens.length,
    tokens,
    logProbs,
    seconds,
    tokensPerSecond: rate(reply, seconds),
  };
}

function describe(reply: ModelReply, seconds: Seconds): string {
  const perSecond = rate(reply, seconds);
  return [
    `prompt ${reply.promptTokens.length} tokens, reply ${reply.tokens.length} (${reply.finishReason})`,
    `loaded in ${seconds.load.toFixed(2)} s, first text after ${seconds.firstToken.toFixed(2)} s`,
    ...(perSecond === undefined ? [] : [`${perSecond.toFixed(1)} tokens/s`]),
  ].join("; ");
}
