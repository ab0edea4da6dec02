import { InstructionBudget, StoryError } from "./instruction-budget.js";
import { CallStack } from "./call-stack.js";
import { Dictionary } from "./dictionary.js";
import { decodeInstruction, toSigned, type Instruction } from "./instruction.js";
import { ObjectTable } from "./object-table.js";
import { Output } from "./output.js";
import { StoryRandom } from "./story-random.js";
import { readWord, type Story } from "./story.js";
import { TextCodec } from "./text-codec.js";

const FIRST_GLOBAL = 16;
const MAX_LOCALS = 15;
const MAX_OPERANDS = 8;
/**
 * Flags 2: bits that survive a restart (transcript, fixed pitch), and unsupported ones (pictures,
 * mouse, sound).
 */
const PRESERVED_FLAGS = 0x03;
const SUPPORTED_FLAGS = 0x57;
/** Flags 1: bold, italic and fixed-space type. */
const TYPE_STYLES = 0x1c;
const SCREEN_COLUMNS = 128;
const SCREEN_ROWS = 24;
const STANDARD_VERSION = 0x0100;
/** Interpreter number 1 (DEC-20) and version F, like TextWorld's interpreter. */
const INTERPRETER_ID = 0x0146;

/**
 * Requested input: a line, a key, or none after the end; with the operands and the result variable
 * of the instruction.
 */
export interface InputRequest {
  readonly kind: "line" | "key" | "nothing";
  readonly operands: readonly number[];
  readonly store: number;
}

/** Processor state of a Z-machine of version 5 or 8. */
export class Processor {
  readonly memory: Uint8Array;
  readonly stack = new CallStack();
  readonly budget: InstructionBudget;
  readonly codec: TextCodec;
  readonly objects: ObjectTable;
  readonly output: Output;
  readonly random = new StoryRandom();
  pc = 0;
  /** Set by instructions that request input or end the story. */
  pendingInput: InputRequest | undefined;
  /** Values of the running instruction's operands. */
  readonly values = new Uint16Array(MAX_OPERANDS);
  private readonly globals: number;
  private readonly dictionaries = new Map<number, Dictionary>();

  constructor(
    readonly story: Story,
    maxInstructions: number,
  ) {
    this.memory = story.bytes.slice();
    this.budget = new InstructionBudget(maxInstructions);
    this.codec = new TextCodec(story, this.memory, this.budget);
    this.objects = new ObjectTable(this.memory, this.writeByte, this.budget);
    this.output = new Output(this.codec, this.writeByte);
    this.globals = this.readWord(0x0c);
  }

  /** Resets the machine to its initial state. */
  reset(): void {
    this.memory[0x11] = this.story.bytes[0x11];
    this.random.seed(0);
    this.output.reset();
    this.restart();
  }

  /** Executes the restart instruction (Standard, section 11.1). */
  restart(): void {
    const preservedFlags = this.memory[0x11] & PRESERVED_FLAGS;
    this.memory.set(this.story.bytes.subarray(0, this.story.staticBase));
    this.memory[0x01] = TYPE_STYLES;
    this.memory[0x11] = (this.memory[0x11] & SUPPORTED_FLAGS & ~PRESERVED_FLAGS) | preservedFlags;
    this.memory[0x20] = SCREEN_ROWS;
    this.memory[0x21] = SCREEN_COLUMNS;
    this.writeWord(0x22, SCREEN_COLUMNS);
    this.writeWord(0x24, SCREEN_ROWS);
    this.writeWord(0x26, 0x0101);
    this.writeWord(0x1e, INTERPRETER_ID);
    this.writeWord(0x32, STANDARD_VERSION);
    this.stack.clear();
    this.pc = this.readWord(0x06);
  }

  readWord(address: number): number {
    return readWord(this.memory, address);
  }

  readonly writeByte = (address: number, value: number): void => {
    if (address >= this.story.staticBase) throw new StoryError(`it writes to address ${address}, which is read-only`);
    this.memory[address] = value;
  };

  writeWord(address: number, value: number): void {
    this.writeByte(address, (value >> 8) & 0xff);
    this.writeByte(address + 1, value & 0xff);
  }

  /** Reads a variable; 0 pops the stack. */
  load(variable: number): number {
    if (variable === 0) return this.stack.pop();
    if (variable < FIRST_GLOBAL) return this.stack.local(variable - 1);
    return this.readWord(this.globals + 2 * (variable - FIRST_GLOBAL));
  }

  /** Sets a variable; 0 pushes onto the stack, -1 discards the value. */
  store(variable: number, value: number): void {
    if (variable < 0) return;
    if (variable === 0) this.stack.push(value & 0xffff);
    else if (variable < FIRST_GLOBAL) this.stack.setLocal(variable - 1, value & 0xffff);
    else this.writeWord(this.globals + 2 * (variable - FIRST_GLOBAL), value);
  }

  /** Reads a variable by reference; 0 peeks at the stack. */
  loadIndirect(variable: number): number {
    return variable === 0 ? this.stack.peek() : this.load(variable);
  }

  /** Sets a variable by reference; 0 replaces the top of the stack. */
  storeIndirect(variable: number, value: number): void {
    if (variable === 0) this.stack.pop();
    this.store(variable, value);
  }

  /** Adds to a variable by reference. Returns the new value. */
  increment(variable: number, amount: number): number {
    this.storeIndirect(variable, this.loadIndirect(variable) + amount);
    return toSigned(this.loadIndirect(variable));
  }

  requestInput(kind: InputRequest["kind"], operands: readonly number[] = [], store = -1): void {
    this.pendingInput = { kind, operands, store };
  }

  print(text: string): void {
    this.budget.spend(text.length);
    this.output.print(text);
  }

  branch(instruction: Instruction, condition: boolean): void {
    if (condition !== instruction.branchIf) return;
    if (instruction.target <= 1) this.returnValue(instruction.target);
    else this.pc = instruction.target;
  }

  returnValue(value: number): void {
    const { store } = this.stack.frame;
    this.pc = this.stack.popFrame();
    this.store(store, value);
  }

  /**
   * Calls the routine at the packed address of the first operand with the other operands as
   * arguments.
   */
  call({ count, store }: Instruction): void {
    const { stack, values } = this;
    const address = values[0] * this.story.unit;
    if (address === 0) return this.store(store, 0);
    const locals = this.memory[address];
    if (!(locals <= MAX_LOCALS)) throw new StoryError(`it calls address ${address}, no routine`);
    stack.pushFrame(locals, count - 1, this.pc, store);
    for (let i = 0; i < count - 1 && i < locals; i++) stack.setLocal(i, values[i + 1]);
    this.pc = address + 1;
  }

  /** Returns the decoded instruction at an address. */
  fetch(address: number): Instruction {
    const cached = this.story.instructions[address];
    if (cached !== undefined) return cached;
    if (address >= this.memory.length) throw new StoryError(`it runs out of its memory, at ${address}`);
    const instruction = decodeInstruction(this.memory, address);
    this.budget.spend(instruction.next - address);
    if (address >= this.story.staticBase) this.story.instructions[address] = instruction;
    return instruction;
  }

  /** Writes the dictionary entries of a line's words to a parse table (Standard, section 13.6). */
  tokenize(line: number, table: number, dictionary: number, keepUnknown: boolean): void {
    const start = line + 2;
    const text = this.memory.subarray(start, start + this.memory[line + 1]);
    const words = this.dictionary(dictionary || this.readWord(0x08)).split(text, this.codec);
    this.budget.spend(text.length);
    const count = Math.min(words.length, this.memory[table]);
    this.writeByte(table + 1, count);
    for (const [i, word] of words.slice(0, count).entries()) {
      if (keepUnknown && word.entry === 0) continue;
      this.writeWord(table + 2 + 4 * i, word.entry);
      this.writeByte(table + 4 + 4 * i, word.length);
      this.writeByte(table + 5 + 4 * i, word.start + 2);
    }
  }

  private dictionary(address: number): Dictionary {
    let dictionary = this.dictionaries.get(address);
    if (dictionary === undefined || address < this.story.staticBase) {
      dictionary = new Dictionary(this.memory, address);
      this.budget.spend(dictionary.size);
      this.dictionaries.set(address, dictionary);
    }
    return dictionary;
  }
}
