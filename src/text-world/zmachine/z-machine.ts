import { LlamaGymError } from "../../core/errors.js";
import { type Instruction, toSigned } from "./instruction.js";
import { Processor } from "./processor.js";
import { executeRareInstruction } from "./rare-instructions.js";
import type { Story } from "./story.js";
import { StoryError } from "./story-error.js";

/** Twenty times the instructions per command of TextWorld's largest games; about a second of work. */
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
    this.processor.reset();
    return this.run();
  }

  /** Whether the story has quit. */
  get hasQuit(): boolean {
    return this.processor.pendingInput === "nothing";
  }

  /** Sends a line. Returns the story's output, after the line break of the return key. */
  send(line: string): string {
    const { processor } = this;
    if (this.hasQuit) return "";
    processor.output.print("\n");
    const { operands, store } = processor.inputInstruction;
    const zscii = Array.from(normalizeInput(line), (character) => processor.codec.toZscii(character));
    if (processor.pendingInput === "key") processor.store(store, zscii[0] ?? RETURN_KEY);
    else {
      const [text, parse] = operands;
      const input = zscii.slice(0, processor.memory[text]);
      processor.writeByte(text + 1, input.length);
      for (const [i, code] of input.entries()) processor.writeByte(text + 2 + i, code);
      if (parse !== 0) processor.tokenize(text, parse, 0, false);
      processor.store(store, RETURN_KEY);
    }
    return this.run();
  }

  private run(): string {
    const { processor } = this;
    const { budget } = processor;
    processor.pendingInput = undefined;
    budget.refill();
    try {
      while (processor.pendingInput === undefined) {
        if (--budget.remaining < 0) budget.spend(0);
        executeInstruction(processor);
      }
    } catch (error) {
      processor.pendingInput = "nothing";
      if (!(error instanceof StoryError)) throw error;
      throw new LlamaGymError("ENV_FAILED", `The story ${this.story.name} failed: ${error.message}.`, { cause: error });
    }
    return processor.output.flush();
  }
}

/** Encodes a line like TextWorld's interpreter: UTF-8 bytes as Latin-1, in lower case, truncated. */
function normalizeInput(line: string): string {
  const bytes = new TextEncoder().encode(line).subarray(0, MAX_LINE_BYTES);
  return String.fromCharCode(...bytes).replace(/[A-Z\u00c0-\u00d6\u00d8-\u00de]/g, (letter) => letter.toLowerCase());
}

/** Executes one instruction; the less frequent ones are in rare-instructions.ts. */
function executeInstruction(processor: Processor): void {
  const instruction = processor.fetch(processor.pc);
  processor.pc = instruction.next;
  const { op, store } = instruction;
  const { objects } = processor;
  const a = processor.value(instruction.a);
  const b = processor.value(instruction.b);
  switch (op) {
    case 1: // je
      return processor.branch(instruction, isEqualToAny(processor, instruction, a, b));
    case 2: // jl
      return processor.branch(instruction, toSigned(a) < toSigned(b));
    case 3: // jg
      return processor.branch(instruction, toSigned(a) > toSigned(b));
    case 4: // dec_chk
      processor.storeIndirect(a, processor.loadIndirect(a) - 1);
      return processor.branch(instruction, toSigned(processor.loadIndirect(a)) < toSigned(b));
    case 5: // inc_chk
      processor.storeIndirect(a, processor.loadIndirect(a) + 1);
      return processor.branch(instruction, toSigned(processor.loadIndirect(a)) > toSigned(b));
    case 6: // jin
      return processor.branch(instruction, objects.parent(a) === b);
    case 7: // test
      return processor.branch(instruction, (a & b) === b);
    case 8: // or
      return processor.store(store, a | b);
    case 9: // and
      return processor.store(store, a & b);
    case 10: // test_attr
      return processor.branch(instruction, objects.hasAttribute(a, b));
    case 11: // set_attr
    case 12: // clear_attr
      return objects.setAttribute(a, b, op === 11);
    case 13: // store
      return processor.storeIndirect(a, b);
    case 15: // loadw
      return processor.store(store, processor.readWord((a + 2 * b) & 0xffff));
    case 16: // loadb
      return processor.store(store, processor.memory[(a + b) & 0xffff]);
    case 17: // get_prop
      return processor.store(store, objects.property(a, b));
    case 18: // get_prop_addr
      return processor.store(store, objects.propertyAddress(a, b));
    case 20: // add
      return processor.store(store, a + b);
    case 21: // sub
      return processor.store(store, a - b);
    case 22: // mul
      return processor.store(store, toSigned(a) * toSigned(b));
    case 25: // call_2s
    case 26: // call_2n
    case 136: // call_1s
    case 143: // call_1n
    case 224: // call_vs
    case 236: // call_vs2
    case 249: // call_vn
    case 250: // call_vn2
      return processor.call(instruction, a, b);
    case 128: // jz
      return processor.branch(instruction, a === 0);
    case 129: // get_sibling
    case 130: {
      // get_child
      const relative = op === 129 ? objects.sibling(a) : objects.child(a);
      processor.store(store, relative);
      return processor.branch(instruction, relative !== 0);
    }
    case 131: // get_parent
      return processor.store(store, objects.parent(a));
    case 132: // get_prop_len
      return processor.store(store, objects.propertyLength(a));
    case 133: // inc
      return processor.storeIndirect(a, processor.loadIndirect(a) + 1);
    case 134: // dec
      return processor.storeIndirect(a, processor.loadIndirect(a) - 1);
    case 139: // ret
      return processor.returnValue(a);
    case 140: // jump
      processor.pc = instruction.next + toSigned(a) - 2;
      return;
    case 142: // load
      return processor.store(store, processor.loadIndirect(a));
    case 176: // rtrue
    case 177: // rfalse
      return processor.returnValue(177 - op);
    case 184: // ret_popped
      return processor.returnValue(processor.stack.pop());
    case 225: // storew
      return processor.writeWord((a + 2 * b) & 0xffff, processor.value(instruction.c));
    case 226: // storeb
      return processor.writeByte((a + b) & 0xffff, processor.value(instruction.c) & 0xff);
    case 232: // push
      return processor.stack.push(a);
    case 233: // pull
      return processor.storeIndirect(a, processor.stack.pop());
    case 255: // check_arg_count
      return processor.branch(instruction, a <= processor.stack.argumentCount);
    default: {
      const c = processor.value(instruction.c);
      return executeRareInstruction(processor, instruction, a, b, c, processor.value(instruction.d));
    }
  }
}

/** Executes je, which compares with up to three values. */
function isEqualToAny(processor: Processor, { count, c, d }: Instruction, a: number, b: number): boolean {
  if (count === 2) return a === b;
  const third = processor.value(c);
  const fourth = processor.value(d);
  return (count > 1 && a === b) || (count > 2 && a === third) || (count > 3 && a === fourth);
}
