import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getFileHeader, frameRecord, readRecords } from "./log-format.js";

function fileOf(records: readonly Uint8Array[]): { bytes: Uint8Array; ends: number[] } {
  let bytes: Uint8Array = getFileHeader();
  const ends: number[] = [];
  for (const record of records) {
    bytes = Buffer.concat([bytes, frameRecord(record, bytes.length)]);
    ends.push(bytes.length);
  }
  return { bytes, ends };
}

const filled = (length: number): Uint8Array => Uint8Array.from({ length }, (_, index) => index * 7);

describe("run file format", () => {
  it("starts with the header of W&B's files", () => {
    expect(Buffer.from(getFileHeader()).toString("hex")).toBe("3a572642e1be00");
  });

  it("writes a short record as one chunk", () => {
    // CRC-32 of 01 61 62 63 by an independent implementation (Python's zlib).
    expect(Buffer.from(frameRecord(new TextEncoder().encode("abc"), 7)).toString("hex")).toBe("a9209d53030001616263");
  });

  it("splits records at block ends and pads with zeros where a header does not fit", () => {
    const { bytes } = fileOf([filled(32_768 - 14 - 3), filled(5)]);
    expect([...bytes.subarray(32_765, 32_768)]).toEqual([0, 0, 0]);
    expect(bytes[32_768 + 6]).toBe(1);
    const long = frameRecord(filled(70_000), 7);
    expect([long[6], long[32_761 + 6], long[32_761 + 32_768 + 6]]).toEqual([2, 3, 4]);
  });

  it("reads back records of any length", () => {
    const length = fc.oneof(
      fc.integer({ min: 0, max: 100 }),
      fc.integer({ min: 32_700, max: 32_800 }),
      fc.constant(100_000),
    );
    fc.assert(
      fc.property(fc.array(length, { maxLength: 8 }), (lengths) => {
        const records = lengths.map(filled);
        const { bytes, ends } = fileOf(records);
        const read = [...readRecords(bytes)];
        expect(read.map(({ data }) => Buffer.compare(data, filled(data.length)))).toEqual(lengths.map(() => 0));
        expect(read.map(({ data }) => data.length)).toEqual(lengths);
        expect(read.map(({ end }) => end)).toEqual(ends);
      }),
      { numRuns: 50 },
    );
  });

  it("stops at the first incomplete record", () => {
    const { bytes, ends } = fileOf([filled(10), filled(40_000), filled(10)]);
    const count = (file: Uint8Array): number => [...readRecords(file)].length;
    expect(count(bytes.subarray(0, ends[2] - 1))).toBe(2);
    expect(count(bytes.subarray(0, 35_000))).toBe(1);
    const flipped = bytes.slice();
    flipped[30] ^= 1;
    expect(count(flipped)).toBe(1);
    flipped[0] ^= 1;
    expect(count(flipped)).toBe(0);
  });
});
