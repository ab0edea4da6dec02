import { describe, expect, it } from "vitest";
import { escapeControls, escapeRendering } from "./terminal-text.js";

const at = (...codes: readonly number[]) => String.fromCodePoint(...codes);
const ESC = at(0x1b);

describe("escapeControls", () => {
  it("shows every control character but line feed and tab, and every bidi override", () => {
    const codes = Array.from({ length: 0x3000 }, (_, code) => code);
    const isControl = (code: number) =>
      (code < 0x20 || (code >= 0x7f && code < 0xa0)) && code !== 0x09 && code !== 0x0a;
    const isBidi = (code: number) => (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    const shown = codes.filter((code) => /^\\(x[01][0-9a-f]|u[0-9a-f]{4})$/.test(escapeControls(at(code))));
    const unchanged = codes.filter((code) => escapeControls(at(code)) === at(code));
    expect(shown).toEqual(codes.filter((code) => isControl(code) || isBidi(code)));
    expect(unchanged).toHaveLength(codes.length - shown.length);
  });

  it.each([
    ["a color", `${ESC}[31mred`, "\\x1b[31mred"],
    ["a title", `${ESC}]0;owned${at(7)}`, "\\x1b]0;owned\\x07"],
    ["a line that is overwritten", "real\rfake", "real\\x0dfake"],
    ["a sequence in one byte", `${at(0x9b)}2J`, "\\u009b2J"],
    ["reversed text", `${at(0x202e)}txt`, "\\u202etxt"],
    ["lines of Windows", "a\r\nb", "a\nb"],
    ["other scripts", "שלום 你好 é 🙂", "שלום 你好 é 🙂"],
  ])("shows %s", (_, text, shown) => {
    expect(escapeControls(text)).toBe(shown);
  });

  it("keeps JSON valid", () => {
    const value = { text: at(...Array.from({ length: 0xa0 }, (_, i) => i)) };
    expect(JSON.parse(escapeControls(JSON.stringify(value)))).toEqual(value);
  });
});

describe("escapeRendering", () => {
  it("keeps colors and ends them, and shows all other sequences", () => {
    expect(escapeRendering(`${ESC}[41mS${ESC}[0mF`)).toBe(`${ESC}[41mS${ESC}[0mF${ESC}[0m`);
    expect(escapeRendering(`${ESC}[1;38:5:2mx${ESC}[2J${ESC}]8;;http://a${at(7)}`)).toBe(
      `${ESC}[1;38:5:2mx\\x1b[2J\\x1b]8;;http://a\\x07${ESC}[0m`,
    );
    expect(escapeRendering(`${ESC}[${"1;".repeat(100)}m`)).toMatch(/^\\x1b/);
    expect(escapeRendering("no color\r")).toBe("no color\\x0d");
  });
});
