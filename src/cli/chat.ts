import { createInterface, type Interface } from "node:readline";
import { LlamaGymError } from "../errors.js";
import type { LanguageModel } from "../generation/language-model.js";
import type { GenerationOptions } from "../generation/options.js";
import { Conversation } from "../text/index.js";
import type { GenerateValues } from "./generation-options.js";
import { hasChatTemplate } from "./open-model.js";
import { UsageError } from "./options.js";
import type { ReplyPrinter } from "./reply-printer.js";

const HELP = "/exit ends, /reset forgets the conversation, Ctrl-C stops a reply.";
const INTERRUPTED = 130;

interface ChatOptions extends Pick<GenerateValues, "system" | "raw"> {
  readonly settings: GenerationOptions;
}

/** Reads lines from standard input and replies to each until /exit or the end; gives the exit status. */
export async function chat(model: LanguageModel, printer: ReplyPrinter, options: ChatOptions): Promise<number> {
  const session =
    options.raw || !hasChatTemplate(model) ? new Continuations(model, options) : new Messages(model, options);
  const isTerminal = process.stdin.isTTY === true;
  const input = createInterface({ input: process.stdin, output: process.stderr, terminal: isTerminal });
  const interrupt = new Interrupt(input);
  const { device, threads } = model.causalLM.runtime;
  if (isTerminal)
    process.stderr.write(`${model.causalLM.config.modelType} on ${device}, ${threads} threads. ${HELP}\n`);
  const ask = () => {
    if (isTerminal) input.prompt();
  };
  ask();
  for await (const line of input) {
    if (interrupt.quits || line.trim() === "/exit" || line.trim() === "/quit") break;
    if (line.trim() === "/reset") session.reset();
    else if (line.trim() === "/help") process.stderr.write(`${HELP}\n`);
    else if (line.trim() !== "") {
      await interrupt.during((signal) => session.reply(line, printer, signal));
      if (interrupt.quits) break;
    }
    ask();
  }
  input.close();
  interrupt.release();
  return interrupt.quits ? INTERRUPTED : 0;
}

/** Ctrl-C: the first stops a reply that is running; with none running, or the second, the chat ends. */
class Interrupt {
  quits = false;
  private running: AbortController | undefined;

  constructor(private readonly input: Interface) {
    input.on("SIGINT", this.handle);
    process.on("SIGINT", this.handle);
  }

  async during(reply: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.running = new AbortController();
    try {
      await reply(this.running.signal);
    } finally {
      this.running = undefined;
    }
  }

  release(): void {
    process.off("SIGINT", this.handle);
  }

  private readonly handle = (): void => {
    if (this.running !== undefined && !this.running.signal.aborted) {
      this.running.abort();
      return;
    }
    if (this.running !== undefined) process.exit(INTERRUPTED);
    this.quits = true;
    this.input.close();
  };
}

/** Turns that the model's chat template puts together. */
class Messages {
  private conversation: Conversation;
  private turn = 0;

  constructor(
    private readonly model: LanguageModel,
    private readonly options: ChatOptions,
  ) {
    this.conversation = this.start();
  }

  reset(): void {
    this.conversation = this.start();
  }

  async reply(line: string, printer: ReplyPrinter, signal: AbortSignal): Promise<void> {
    const next = this.conversation.fork();
    next.add({ role: "user", content: line });
    try {
      const prompt = this.promptThatFits(next);
      const { seed, ...settings } = this.options.settings;
      const seeded = seed === undefined ? settings : { ...settings, seed: seed + this.turn };
      const reply = await printer.print(this.model.generate(prompt, { ...seeded, signal }));
      this.turn++;
      next.appendReply(reply.tokens);
      this.conversation = next;
    } catch (error) {
      complain(error);
    }
  }

  private start(): Conversation {
    const { system } = this.options;
    return new Conversation(this.model.tokenizer, {
      messages: system === undefined ? [] : [{ role: "system", content: system }],
    });
  }

  /** Without the oldest turns where the context is full, which is told. */
  private promptThatFits(conversation: Conversation): readonly number[] {
    const { maxNewTokens = 1 } = this.options.settings;
    const room = this.model.causalLM.config.maxPositions - maxNewTokens;
    let dropped = 0;
    while (conversation.promptIds().length > room) {
      const count = conversation.dropOldestTurns();
      if (count === 0) break;
      dropped += count;
    }
    if (dropped > 0) process.stderr.write(`(The context is full: the oldest ${dropped} messages were left out.)\n`);
    return conversation.promptIds();
  }
}

/** Each line is a text to go on with, for models without a chat template. */
class Continuations {
  constructor(
    private readonly model: LanguageModel,
    private readonly options: ChatOptions,
  ) {
    if (options.system !== undefined) throw new UsageError("This model has no chat template, so it takes no --system.");
  }

  reset(): void {}

  async reply(line: string, printer: ReplyPrinter, signal: AbortSignal): Promise<void> {
    try {
      await printer.print(this.model.generate(line, { ...this.options.settings, signal }));
    } catch (error) {
      complain(error);
    }
  }
}

/** What is wrong with one message does not end the chat. */
function complain(error: unknown): void {
  if (!(error instanceof LlamaGymError) || error.code === "RUNTIME_FAILED") throw error;
  process.stderr.write(`${error.toString().replaceAll("\n", " ")}\n`);
}
