import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { cosFloat32, sinFloat32 } from "./float32-trigonometry.js";
import { cos, sin } from "./trigonometry.js";

/**
 * Values of the GNU C library 2.36 (x, sin, cos) and of NumPy 2.4 for float32 numbers (x32, sin32,
 * cos32).
 */
const recorded = JSON.parse(
  readFileSync(new URL("../../../test/fixtures/gym/trigonometry.json", import.meta.url), "utf8"),
) as Readonly<Record<"x" | "sin" | "cos" | "x32" | "sin32" | "cos32", number[]>>;

describe("double sine and cosine", () => {
  it("equal the C library's to the last bit", () => {
    expect(recorded.x.map(sin)).toEqual(recorded.sin);
    expect(recorded.x.map(cos)).toEqual(recorded.cos);
  });

  it("differ from Math's in some last bits", () => {
    expect(recorded.x.some((x, i) => Math.sin(x) !== recorded.sin[i])).toBe(true);
  });

  it("stay within one unit in the last place of Math's", () => {
    const largest = Math.max(...recorded.x.map((x) => Math.abs(sin(x) - Math.sin(x)) / Math.abs(Math.sin(x) || 1)));
    expect(largest).toBeLessThan(2 ** -51);
  });
});

describe("float32 sine and cosine", () => {
  it("equal NumPy's to the last bit", () => {
    expect(recorded.x32.map(sinFloat32)).toEqual(recorded.sin32);
    expect(recorded.x32.map(cosFloat32)).toEqual(recorded.cos32);
  });
});
