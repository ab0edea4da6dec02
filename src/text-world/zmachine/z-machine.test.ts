import { describe, expect, it } from "vitest";
import { LlamaGymError } from "../../core/errors.js";
import { ZMachine } from "./z-machine.js";
import { Story } from "./story.js";

const CODE = 0x400;
const STATIC = 0x300;

/**
 * A story of version 8 whose program starts at CODE. The default dictionary is empty, at STATIC.
 */
function story(code: number[], change: (bytes: Uint8Array) => void = () => {}): Uint8Array {
  const bytes = new Uint8Array(0x800);
  const word = (address: number, value: number) => bytes.set([value >> 8, value & 0xff], address);
  bytes[0] = 8;
  word(0x06, CODE);
  word(0x08, STATIC);
  word(0x0a, 0x200);
  word(0x0c, 0x100);
  word(0x0e, STATIC);
  word(0x1a, bytes.length / 8);
  bytes.set([0, 9, 0, 0], STATIC);
  bytes.set(code, CODE);
  change(bytes);
  const sum = bytes.subarray(0x40).reduce((total, byte) => total + byte, 0);
  word(0x1c, sum & 0xffff);
  return bytes;
}

const QUIT = 0xba;
const print = (...letters: number[]) => letters.flatMap((letter) => [0xe5, 0x7f, letter]);
/** print_num of a global variable, then a line break. */
const printGlobal = (variable: number) => [0xe6, 0xbf, variable, 0xbb];
const play = (code: number[]) => new ZMachine(new Story(story(code), "test.z8")).start();

describe("the Z-machine", () => {
  it("calculates with signed 16-bit numbers", () => {
    // add, sub, mul, div and mod of -7 (0xfff9) and 2 or 3 to global 16
    const sums: [number, number][] = [
      [0x14, -5],
      [0x15, -9],
      [0x16, -14],
      [0x17, -3],
      [0x18, -1],
    ];
    for (const [op, result] of sums) {
      const code = [0xc0 | op, 0x1f, 0xff, 0xf9, 2, 16, ...printGlobal(16), QUIT];
      expect(play(code)).toBe(`${result}\n`);
    }
  });

  it("calls routines with arguments and returns their value", () => {
    // call_vs routine 0xa0 (at 0x500) with 5 and 8, to global 16
    const main = [0xe0, 0x17, 0x00, 0xa0, 5, 8, 16, ...printGlobal(16), QUIT];
    const bytes = story(main, (memory) => memory.set([2, 0x74, 1, 2, 0, 0xb8], 0x500)); // add local1 local2 -> stack; ret_popped
    expect(new ZMachine(new Story(bytes, "test.z8")).start()).toBe("13\n");
  });

  it("reads a line in lower case, and starts again from the beginning", () => {
    const buffer = 0x280;
    // storeb buffer 0 20; read buffer 0 -> sp; print the first two characters typed; quit
    const [high, low] = [buffer >> 8, buffer & 0xff];
    const setUp = [0xe2, 0x17, high, low, 0, 20, ...print(62), 0xe4, 0x1f, high, low, 0, 17];
    const printCharacter = (offset: number) => [0xd0, 0x1f, high, low, offset, 16, 0xe5, 0xbf, 16];
    const code = [...setUp, ...printCharacter(2), ...printCharacter(3), QUIT];
    const machine = new ZMachine(new Story(story(code), "test.z8"));
    for (let round = 0; round < 2; round++) {
      expect(machine.start()).toBe(">");
      expect(machine.send("GO west")).toBe("\ngo");
      expect(machine.hasQuit).toBe(true);
      expect(machine.send("more")).toBe("");
    }
  });

  it.each([
    ["loops for ever", [0x8c, 0xff, 0xff], /did not ask for input within 100000 instructions/],
    ["calls itself for ever", [0x8f, 0x00, 0xa0], /its calls go too deep/],
    ["writes where it must not", [0xe2, 0x17, 0x03, 0x00, 0, 1], /writes to address 768, which is read-only/],
    ["divides by zero", [0xd7, 0x5f, 5, 0, 16], /divides by zero/],
    ["takes from an empty stack", [0xb8], /empty stack/],
    ["has an unknown instruction", [0xbe, 0x1d, 0xff], /unknown instruction/],
    ["jumps out of its memory", [0x8c, 0x7f, 0x00], /runs out of its memory/],
    ["returns from its main routine", [0xb0], /returns from its main routine/],
  ])("ends a story that %s with ENV_FAILED", (_, code, message) => {
    // The routine at 0x500 has no locals and calls itself.
    const bytes = story(code, (memory) => memory.set([0, 0x8f, 0x00, 0xa0], 0x500));
    const machine = new ZMachine(new Story(bytes, "wild.z8"), 100_000);
    expect(() => machine.start()).toThrow(message);
    expect(() => machine.start()).toThrow(LlamaGymError);
    expect(() => machine.start()).toThrow("wild.z8");
  });

  it("refuses files that are cut short, changed or of another kind", () => {
    const whole = story([QUIT]);
    const changed = whole.slice();
    changed[0x600] ^= 1;
    const old = whole.slice();
    old[0] = 3;
    const getErrorCode = (bytes: Uint8Array) => {
      try {
        return new Story(bytes, "x.z8").version;
      } catch (error) {
        return (error as LlamaGymError).code;
      }
    };
    expect(getErrorCode(whole)).toBe(8);
    expect(getErrorCode(whole.subarray(0, 40))).toBe("FILE_CORRUPT");
    expect(getErrorCode(whole.subarray(0, 0x700))).toBe("FILE_CORRUPT");
    expect(getErrorCode(changed)).toBe("FILE_CORRUPT");
    expect(getErrorCode(old)).toBe("FORMAT_UNSUPPORTED");
    expect(getErrorCode(new Uint8Array(100).fill(80))).toBe("FORMAT_UNSUPPORTED");
  });
});
