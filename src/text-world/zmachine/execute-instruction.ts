import { type Instruction, toSigned } from "./instruction.js";
import { StoryError } from "./instruction-budget.js";
import { CHILD, PARENT, SIBLING } from "./object-table.js";
import type { Processor } from "./processor.js";

const BYTE_TABLE = 0x7f;
const WORD_ENTRIES = 0x80;
/** Default form of scan_table: words. */
const WORDS = 0x82;
const NORMAL_FONT = 1;
/**
 * Result of save_undo: TextWorld's interpreter does not support undo, which its rules could not
 * track.
 */
const UNSUPPORTED = 0xffff;
/** Result of check_unicode: the character can be printed and read. */
const PRINTS_AND_READS = 3;

/** An instruction on the values of its first four operands. */
type Operation<Result> = (
  machine: Processor,
  a: number,
  b: number,
  c: number,
  d: number,
  instruction: Instruction,
) => Result;

/**
 * Instructions with a result (Standard, section 15). Those that also branch do so for a result
 * other than 0.
 */
const RESULTS: Readonly<Record<number, Operation<number>>> = {
  8: (_, a, b) => a | b, // or
  9: (_, a, b) => a & b, // and
  15: (machine, a, b) => machine.readWord((a + 2 * b) & 0xffff), // loadw
  16: (machine, a, b) => machine.memory[(a + b) & 0xffff], // loadb
  17: (machine, a, b) => machine.objects.property(a, b), // get_prop
  18: (machine, a, b) => machine.objects.propertyAddress(a, b), // get_prop_addr
  19: (machine, a, b) => machine.objects.nextProperty(a, b), // get_next_prop
  20: (_, a, b) => a + b, // add
  21: (_, a, b) => a - b, // sub
  22: (_, a, b) => toSigned(a) * toSigned(b), // mul
  23: (_, a, b) => Math.trunc(toSigned(a) / checkDivisor(b)), // div
  24: (_, a, b) => toSigned(a) % checkDivisor(b), // mod
  129: (machine, a) => machine.objects.link(a, SIBLING), // get_sibling
  130: (machine, a) => machine.objects.link(a, CHILD), // get_child
  131: (machine, a) => machine.objects.link(a, PARENT), // get_parent
  132: (machine, a) => machine.objects.propertyLength(a), // get_prop_len
  142: (machine, a) => machine.loadIndirect(a), // load
  185: (machine) => machine.stack.depth, // catch
  231: (machine, a) => machine.random.next(toSigned(a)), // random
  247: (machine, a, b, c, d, { count }) => scanTable(machine, a, b, c, count > 3 ? d : WORDS), // scan_table
  248: (_, a) => ~a, // not
  256: () => 0, // save: the environment saves the story
  257: () => 0, // restore
  258: (_, a, b) => (toSigned(b) < 0 ? a >>> -toSigned(b) : a << b), // log_shift
  259: (_, a, b) => (toSigned(b) < 0 ? toSigned(a) >> -toSigned(b) : a << b), // art_shift
  260: (_, a) => (a <= NORMAL_FONT ? NORMAL_FONT : 0), // set_font
  265: () => UNSUPPORTED, // save_undo
  266: () => UNSUPPORTED, // restore_undo
  268: () => PRINTS_AND_READS, // check_unicode
};

/** Instructions that only branch. */
const CONDITIONS: Readonly<Record<number, Operation<boolean>>> = {
  1: (_, a, b, c, d, { count }) => (count > 1 && a === b) || (count > 2 && a === c) || (count > 3 && a === d), // je
  2: (_, a, b) => toSigned(a) < toSigned(b), // jl
  3: (_, a, b) => toSigned(a) > toSigned(b), // jg
  4: (machine, a, b) => machine.increment(a, -1) < toSigned(b), // dec_chk
  5: (machine, a, b) => machine.increment(a, 1) > toSigned(b), // inc_chk
  6: (machine, a, b) => machine.objects.link(a, PARENT) === b, // jin
  7: (_, a, b) => (a & b) === b, // test
  10: (machine, a, b) => machine.objects.hasAttribute(a, b), // test_attr
  128: (_, a) => a === 0, // jz
  189: () => true, // verify
  191: () => true, // piracy
  255: (machine, a) => a <= machine.stack.frame.argumentCount, // check_arg_count
};

/** The variants of call, with and without a result. */
const CALLS: readonly number[] = [25, 26, 136, 143, 224, 236, 249, 250];

/** Instructions for screens and sound, such as set_window, and nop. */
const IGNORED: readonly number[] = [27, 180, 188, 234, 235, 237, 238, 239, 241, 242, 244, 245, 269];

/** All other instructions. */
const ACTIONS: Readonly<Record<number, Operation<void>>> = {
  11: (machine, a, b) => machine.objects.setAttribute(a, b, true), // set_attr
  12: (machine, a, b) => machine.objects.setAttribute(a, b, false), // clear_attr
  13: (machine, a, b) => machine.storeIndirect(a, b), // store
  14: (machine, a, b) => machine.objects.insert(a, b), // insert_obj
  28: (machine, a, b) => {
    machine.stack.unwind(b);
    machine.returnValue(a);
  }, // throw
  133: (machine, a) => void machine.increment(a, 1), // inc
  134: (machine, a) => void machine.increment(a, -1), // dec
  135: (machine, a) => machine.print(machine.codec.decode(a)), // print_addr
  137: (machine, a) => machine.objects.remove(a), // remove_obj
  138: (machine, a) => machine.print(machine.codec.decode(machine.objects.nameAddress(a))), // print_obj
  139: (machine, a) => machine.returnValue(a), // ret
  140: (machine, a) => void (machine.pc += toSigned(a) - 2), // jump
  141: (machine, a) => machine.print(machine.codec.decode(a * machine.story.unit)), // print_paddr
  176: (machine) => machine.returnValue(1), // rtrue
  177: (machine) => machine.returnValue(0), // rfalse
  178: (machine, _a, _b, _c, _d, { text }) => machine.print(machine.codec.decode(text)), // print
  179: (machine, _a, _b, _c, _d, { text }) => {
    machine.print(`${machine.codec.decode(text)}\n`);
    machine.returnValue(1);
  }, // print_ret
  183: (machine) => machine.restart(), // restart
  184: (machine) => machine.returnValue(machine.stack.pop()), // ret_popped
  186: (machine) => machine.requestInput("nothing"), // quit
  187: (machine) => machine.print("\n"), // new_line
  225: (machine, a, b, c) => machine.writeWord((a + 2 * b) & 0xffff, c), // storew
  226: (machine, a, b, c) => machine.writeByte((a + b) & 0xffff, c & 0xff), // storeb
  227: (machine, a, b, c) => machine.objects.setProperty(a, b, c), // put_prop
  228: (machine, a, b, _c, _d, { store }) => machine.requestInput("line", [a, b], store), // read
  229: (machine, a) => machine.print(machine.codec.toUnicode(a)), // print_char
  230: (machine, a) => machine.print(String(toSigned(a))), // print_num
  232: (machine, a) => machine.stack.push(a), // push
  233: (machine, a) => machine.storeIndirect(a, machine.stack.pop()), // pull
  240: (machine, a) => {
    machine.writeWord(a, 1);
    machine.writeWord(a + 2, 1);
  }, // get_cursor
  243: (machine, a, b) => machine.output.select(toSigned(a), b), // output_stream
  246: (machine, a, b, _c, _d, { store }) => machine.requestInput("key", [a, b], store), // read_char
  251: (machine, a, b, c, d) => machine.tokenize(a, b, c, d !== 0), // tokenize
  252: ({ codec, memory, writeByte }, a, b, c, d) => {
    for (const [i, byte] of codec.encodeWord(memory.subarray(a + c, a + c + b)).entries()) writeByte(d + i, byte);
  }, // encode_text
  253: (machine, a, b, c) => copyTable(machine, a, b, toSigned(c)), // copy_table
  254: (machine, a, b, c, d, { count }) => printTable(machine, a, b, count > 2 ? c : 1, d), // print_table
  267: (machine, a) => machine.print(String.fromCharCode(a)), // print_unicode
};

const callRoutine: Operation<void> = (machine, _a, _b, _c, _d, instruction) => machine.call(instruction);

/** A dense copy, which V8 reads much faster than an object with a few large keys. */
function toArray<Value>(table: Readonly<Record<number, Value>>): readonly (Value | undefined)[] {
  return Array.from({ length: 1 + Math.max(...Object.keys(table).map(Number)) }, (_, op) => table[op]);
}

const results = toArray(RESULTS);
const conditions = toArray(CONDITIONS);
const actions = toArray<Operation<void>>({
  ...ACTIONS,
  ...Object.fromEntries(IGNORED.map((op) => [op, () => {}])),
  ...Object.fromEntries(CALLS.map((op) => [op, callRoutine])),
});

/** Executes the instruction at the program counter. */
export function executeInstruction(machine: Processor): void {
  const instruction = machine.fetch(machine.pc);
  machine.pc = instruction.next;
  const { op, count, operands, store, target } = instruction;
  const { values } = machine;
  for (let i = 0; i < count; i++) {
    const operand = operands[i];
    values[i] = operand >= 0 ? operand : machine.load(~operand);
  }
  const a = count > 0 ? values[0] : 0;
  const b = count > 1 ? values[1] : 0;
  const c = count > 2 ? values[2] : 0;
  const d = count > 3 ? values[3] : 0;
  const compute = results[op];
  if (compute !== undefined) {
    const result = compute(machine, a, b, c, d, instruction);
    machine.store(store, result);
    if (target >= 0) machine.branch(instruction, result !== 0);
    return;
  }
  const test = conditions[op];
  if (test !== undefined) return machine.branch(instruction, test(machine, a, b, c, d, instruction));
  const act = actions[op];
  if (act === undefined) throw new StoryError(`it has an unknown instruction, ${op}`);
  act(machine, a, b, c, d, instruction);
}

/** Returns a divisor as a signed number. */
function checkDivisor(value: number): number {
  if (value === 0) throw new StoryError("it divides by zero");
  return toSigned(value);
}

/** Returns the address of the entry that starts with `target`, or 0. */
function scanTable(machine: Processor, target: number, table: number, length: number, form: number): number {
  for (let i = 0; i < length; i++) {
    const address = table + i * (form & BYTE_TABLE);
    if ((form & WORD_ENTRIES ? machine.readWord(address) : machine.memory[address]) === target) return address;
    machine.budget.spend(1);
  }
  return 0;
}

/** Zeroes the first table or copies it to the second; a negative size forces a forward copy. */
function copyTable({ budget, memory, writeByte }: Processor, first: number, second: number, size: number): void {
  const length = Math.abs(size);
  budget.spend(length);
  const bytes = size < 0 ? memory.subarray(first, first + length) : memory.slice(first, first + length);
  for (let i = 0; i < length; i++) writeByte((second || first) + i, second === 0 ? 0 : bytes[i]);
}

function printTable(machine: Processor, start: number, width: number, height: number, skip: number): void {
  for (let row = 0; row < height; row++) {
    const at = start + row * (width + skip);
    const letters = Array.from(machine.memory.subarray(at, at + width), (zscii) => machine.codec.toUnicode(zscii));
    machine.print(`${row > 0 ? "\n" : ""}${letters.join("")}`);
  }
}
