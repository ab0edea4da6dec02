/** A decoded instruction. */
export interface Instruction {
  /** 2OP 1..28, 1OP 128..143, 0OP 176..191, VAR 224..255, extended 256 and more. */
  readonly op: number;
  /** Number of operands. */
  readonly count: number;
  /** Each a constant, or ~variable. */
  readonly operands: readonly number[];
  /** The variable that takes the result, -1 for none. */
  readonly store: number;
  /** Branch target: an address, 0 or 1 to return that value, -1 for no branch. */
  readonly target: number;
  readonly branchIf: boolean;
  /** Address of an inline text. */
  readonly text: number;
  /** Address of the next instruction. */
  readonly next: number;
}

const EXTENDED = 0xbe;
const STORING_OPCODES = new Set([
  8, 9, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 129, 130, 131, 132, 136, 142, 185, 224, 228, 231, 236, 246, 247,
  248, 256, 257, 258, 259, 260, 265, 266, 268,
]);
const BRANCHING_OPCODES = new Set([1, 2, 3, 4, 5, 6, 7, 10, 128, 129, 130, 189, 191, 247, 255]);
const TEXT_OPCODES = new Set([178, 179]);
/** Calls with up to eight operands have two bytes of operand types. */
const LONG_CALL_OPCODES = new Set([236, 250]);

const LARGE = 0;
const SMALL = 1;
const VARIABLE = 2;
const OMITTED = 3;

/** Interprets a 16-bit value as signed. */
export function toSigned(value: number): number {
  return (value << 16) >> 16;
}

/** Decodes the instruction at `start` (Standard, sections 4 and 14). */
export function decodeInstruction(memory: Uint8Array, start: number): Instruction {
  let position = start;
  const byte = () => memory[position++] ?? 0;
  const word = () => (byte() << 8) | byte();

  const first = byte();
  let op = first;
  let types: number[];
  const variableTypes = () => {
    const packed = byte();
    return [packed >> 6, (packed >> 4) & 3, (packed >> 2) & 3, packed & 3];
  };
  if (first === EXTENDED) {
    op = 256 + byte();
    types = variableTypes();
  } else if (first >= 0xc0) {
    if (first < 0xe0) op = first & 0x1f;
    types = variableTypes();
    if (LONG_CALL_OPCODES.has(op)) types.push(...variableTypes());
  } else if (first >= 0x80) {
    types = [(first >> 4) & 3];
    op = types[0] === OMITTED ? first : first & 0xcf;
  } else {
    types = [first & 0x40 ? VARIABLE : SMALL, first & 0x20 ? VARIABLE : SMALL];
    op = first & 0x1f;
  }

  const operands: number[] = [];
  for (const type of types) {
    if (type === OMITTED) break;
    operands.push(type === LARGE ? word() : type === SMALL ? byte() : ~byte());
  }
  const store = STORING_OPCODES.has(op) ? byte() : -1;
  const { target, branchIf } = BRANCHING_OPCODES.has(op) ? decodeBranch(byte, () => position) : NO_BRANCH;
  const text = position;
  if (TEXT_OPCODES.has(op)) while ((word() & 0x8000) === 0 && position < memory.length);
  return { op, count: operands.length, operands, store, target, branchIf, text, next: position };
}

const NO_BRANCH = { target: -1, branchIf: false };

function decodeBranch(byte: () => number, position: () => number): { target: number; branchIf: boolean } {
  const first = byte();
  const offset = first & 0x40 ? first & 0x3f : ((((first & 0x3f) << 8) | byte()) << 18) >> 18;
  // Offsets 0 and 1 return false and true; addresses 0 and 1 are in the header, so they are
  // unambiguous.
  const target = offset === 0 || offset === 1 ? offset : Math.max(2, position() + offset - 2);
  return { target, branchIf: (first & 0x80) !== 0 };
}
