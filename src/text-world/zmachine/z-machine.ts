import { LlamaGymError } from "../../core/errors.js";
import { executeInstruction } from "./execute-instruction.js";
import { StoryError } from "./instruction-budget.js";
import { Processor } from "./processor.js";
import type { Story } from "./story.js";

/**
 * Twenty times the instructions per command of TextWorld's largest games; about a second of work.
 */
const MAX_INSTRUCTIONS = 50_000_000;
const RETURN_KEY = 13;
const MAX_LINE_BYTES = 198;

/**
 * Runs a story: text in, text out, both windows in one stream, like TextWorld's interpreter.
 * @throws ENV_FAILED when the story violates the standard or exceeds its instruction budget
 */
export class ZMachine {
  private readonly processor: Processor;

  /** `maxInstructions`: instruction budget per command. */
  constructor(
    private readonly story: Story,
    maxInstructions = MAX_INSTRUCTIONS,
  ) {
    this.processor = new Processor(story, maxInstructions);
  }

  /** Starts or restarts the story. Returns its first text. */
  start(): string {
    return this.run(() => this.processor.reset());
  }

  /** Whether the story has quit. */
  get hasQuit(): boolean {
    return this.processor.pendingInput?.kind === "nothing";
  }

  /** Sends a line. Returns the story's output, after the line break of the return key. */
  send(line: string): string {
    const { processor } = this;
    const { pendingInput } = processor;
    if (pendingInput === undefined || this.hasQuit) return "";
    const { kind, operands, store } = pendingInput;
    return this.run(() => {
      processor.output.print("\n");
      const zscii = Array.from(normalizeInput(line), (character) => processor.codec.toZscii(character));
      if (kind === "key") return processor.store(store, zscii[0] ?? RETURN_KEY);
      const [text, parse] = operands;
      const input = zscii.slice(0, processor.memory[text]);
      for (const [i, code] of [input.length, ...input].entries()) processor.writeByte(text + 1 + i, code);
      if (parse !== 0) processor.tokenize(text, parse, 0, false);
      processor.store(store, RETURN_KEY);
    });
  }

  /** Runs to the next input, after `begin`. */
  private run(begin: () => void): string {
    const { processor } = this;
    const { budget } = processor;
    processor.pendingInput = undefined;
    budget.refill();
    try {
      begin();
      while (processor.pendingInput === undefined) {
        if (--budget.remaining < 0) budget.spend(0);
        executeInstruction(processor);
      }
    } catch (error) {
      processor.requestInput("nothing");
      if (!(error instanceof StoryError)) throw error;
      throw new LlamaGymError("ENV_FAILED", `The story ${this.story.name} failed: ${error.message}.`, { cause: error });
    }
    return processor.output.flush();
  }
}

/**
 * Encodes a line like TextWorld's interpreter: UTF-8 bytes as Latin-1, in lower case, truncated.
 */
function normalizeInput(line: string): string {
  const bytes = new TextEncoder().encode(line).subarray(0, MAX_LINE_BYTES);
  return String.fromCharCode(...bytes).replace(/[A-Z\u00c0-\u00d6\u00d8-\u00de]/g, (letter) => letter.toLowerCase());
}
