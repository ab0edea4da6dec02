import { type Instruction, toSigned } from "./instruction.js";
import type { Processor } from "./processor.js";
import { StoryError } from "./story-error.js";

const BYTE_TABLE = 0x7f;
const WORD_ENTRIES = 0x80;
/** Default form of scan_table: words. */
const WORDS = 0x82;
const NORMAL_FONT = 1;
/** Result of save_undo: TextWorld's interpreter does not support undo, which its rules could not track. */
const UNSUPPORTED = 0xffff;
/** Result of check_unicode: the character can be printed and read. */
const PRINTS_AND_READS = 3;

/** Executes the less frequent instructions (Standard, section 15). `a` to `d` are the operands' values. */
export function executeRareInstruction(
  processor: Processor,
  instruction: Instruction,
  a: number,
  b: number,
  c: number,
  d: number,
): void {
  const { memory, objects, output, stack } = processor;
  const storeResult = (value: number) => processor.store(instruction.store, value);
  const print = (text: string) => {
    processor.budget.spend(text.length);
    output.print(text);
  };
  switch (instruction.op) {
    case 14: // insert_obj
      return objects.insert(a, b);
    case 19: // get_next_prop
      return storeResult(objects.nextProperty(a, b));
    case 23: // div
    case 24: // mod
      if (b === 0) throw new StoryError("it divides by zero");
      return storeResult(instruction.op === 23 ? Math.trunc(toSigned(a) / toSigned(b)) : toSigned(a) % toSigned(b));
    case 28: // throw
      stack.unwind(b);
      return processor.returnValue(a);
    case 135: // print_addr
      return print(processor.codec.decode(a));
    case 137: // remove_obj
      return objects.remove(a);
    case 138: // print_obj
      return print(processor.codec.decode(objects.nameAddress(a)));
    case 141: // print_paddr
      return print(processor.codec.decode(a * processor.story.unit));
    case 178: // print
      return print(processor.codec.decode(instruction.text));
    case 179: // print_ret
      print(`${processor.codec.decode(instruction.text)}\n`);
      return processor.returnValue(1);
    case 183: // restart
      return processor.restart();
    case 185: // catch
      return storeResult(stack.mark);
    case 186: // quit
      processor.pendingInput = "nothing";
      return;
    case 187: // new_line
      return print("\n");
    case 189: // verify
    case 191: // piracy
      return processor.branch(instruction, true);
    case 227: // put_prop
      return objects.setProperty(a, b, c);
    case 228: // read
    case 246: // read_char
      processor.inputInstruction = { operands: [a, b, c, d], store: instruction.store };
      processor.pendingInput = instruction.op === 228 ? "line" : "key";
      return;
    case 229: // print_char
      return print(processor.codec.toUnicode(a));
    case 230: // print_num
      return print(String(toSigned(a)));
    case 231: // random
      return storeResult(processor.random.next(toSigned(a)));
    case 240: // get_cursor
      processor.writeWord(a, 1);
      return processor.writeWord(a + 2, 1);
    case 243: // output_stream
      return output.select(toSigned(a), b);
    case 247: {
      // scan_table
      const found = scanTable(processor, a, b, c, instruction.count > 3 ? d : WORDS);
      storeResult(found);
      return processor.branch(instruction, found !== 0);
    }
    case 248: // not
      return storeResult(~a);
    case 251: // tokenise
      return processor.tokenize(a, b, c, d !== 0);
    case 252: // encode_text
      for (const [i, byte] of processor.codec.encodeWord(memory.subarray(a + c, a + c + b)).entries()) {
        processor.writeByte(d + i, byte);
      }
      return;
    case 253: // copy_table
      return copyTable(processor, a, b, toSigned(c));
    case 254: // print_table
      for (let row = 0; row < (instruction.count > 2 ? c : 1); row++) {
        const start = a + row * (b + d);
        const text = Array.from(memory.subarray(start, start + b), (zscii) => processor.codec.toUnicode(zscii)).join(
          "",
        );
        print(row > 0 ? `\n${text}` : text);
      }
      return;
    case 256: // save
    case 257: // restore
      // The environment saves the story; save instructions of the story fail.
      return storeResult(0);
    case 258: // log_shift
      return storeResult(toSigned(b) < 0 ? a >>> -toSigned(b) : a << b);
    case 259: // art_shift
      return storeResult(toSigned(b) < 0 ? toSigned(a) >> -toSigned(b) : a << b);
    case 260: // set_font
      return storeResult(a <= NORMAL_FONT ? NORMAL_FONT : 0);
    case 265: // save_undo
    case 266: // restore_undo
      return storeResult(UNSUPPORTED);
    case 267: // print_unicode
      return print(String.fromCharCode(a));
    case 268: // check_unicode
      return storeResult(PRINTS_AND_READS);
    case 27: // set_colour
    case 180: // nop
    case 188: // show_status
    case 234: // split_window
    case 235: // set_window
    case 237: // erase_window
    case 238: // erase_line
    case 239: // set_cursor
    case 241: // set_text_style
    case 242: // buffer_mode
    case 244: // input_stream
    case 245: // sound_effect
    case 269: // set_true_colour
      return;
    default:
      throw new StoryError(`it has an unknown instruction, ${instruction.op}`);
  }
}

/** Returns the address of the entry that starts with `wanted`, or 0. */
function scanTable(processor: Processor, target: number, table: number, length: number, form: number): number {
  const entry = form & BYTE_TABLE;
  for (let i = 0; i < length; i++) {
    const address = table + i * entry;
    const found = form & WORD_ENTRIES ? processor.readWord(address) : processor.memory[address];
    if (found === target) return address;
    processor.budget.spend(1);
  }
  return 0;
}

/** Zeroes the first table or copies it to the second; a negative size forces a forward copy. */
function copyTable(processor: Processor, first: number, second: number, size: number): void {
  const length = Math.abs(size);
  processor.budget.spend(length);
  const bytes =
    size < 0 ? processor.memory.subarray(first, first + length) : processor.memory.slice(first, first + length);
  for (let i = 0; i < length; i++) {
    processor.writeByte((second === 0 ? first : second) + i, second === 0 ? 0 : bytes[i]);
  }
}
