import { createContext, runInContext } from "node:vm";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RandomStream } from "../../../core/random/random-stream.js";
import { runSteps } from "../../../core/steps.js";
import { ByteAutomaton, DEAD_STATE } from "../automaton/byte-automaton.js";
import { parseRegex } from "./parse-regex.js";

const utf8 = new TextEncoder();

const compile = (regex: string | RegExp, options = {}) =>
  runSteps(ByteAutomaton.build(parseRegex(regex, options), "The expression"));

function accepts(automaton: ByteAutomaton, text: string): boolean {
  const state = automaton.walk(0, utf8.encode(text));
  return state !== DEAD_STATE && automaton.accepting[state] === 1;
}

/** Generates a match by a random walk, and by the shortest path to an end after 20 bytes. */
function sampleText(automaton: ByteAutomaton, random: RandomStream): string {
  const distanceToEnd = computeDistances(automaton);
  const bytes: number[] = [];
  let state = 0;
  while (
    automaton.accepting[state] === 0 ||
    (bytes.length < 20 && automaton.canContinue(state) && random.random() < 0.9)
  ) {
    const nextBytes = Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => {
      const to = automaton.step(state, byte);
      return to !== DEAD_STATE && (bytes.length < 20 || distanceToEnd[to] < distanceToEnd[state]);
    });
    const byte = nextBytes[random.integers(0, nextBytes.length)];
    bytes.push(byte);
    state = automaton.step(state, byte);
  }
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

/** Returns the number of bytes from each state to the nearest end. */
function computeDistances(automaton: ByteAutomaton): number[] {
  const far = Array.from(automaton.accepting, (value) => (value === 1 ? 0 : Infinity));
  for (let changed = true; changed;) {
    changed = false;
    for (let from = 0; from < far.length; from++) {
      for (const byte of automaton.representativeBytes) {
        const to = automaton.step(from, byte);
        if (to === DEAD_STATE || far[to] + 1 >= far[from]) continue;
        far[from] = far[to] + 1;
        changed = true;
      }
    }
  }
  return far;
}

/** Generates regular expressions of all supported syntax. */
const { regex } = fc.letrec<{ regex: string; alternative: string; repeated: string; atom: string }>((tie) => ({
  regex: fc.array(tie("alternative"), { minLength: 1, maxLength: 2 }).map((options) => options.join("|")),
  alternative: fc.array(tie("repeated"), { maxLength: 2 }).map((parts) => parts.join("")),
  repeated: fc
    .tuple(tie("atom"), fc.constantFrom("", "", "", "*", "+", "?", "{2}", "{1,}", "{0,2}", "{1,3}", "*?", "+?"))
    .map(([atom, count]) => atom + count),
  atom: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    fc.constantFrom("a", "b", "c", "é", "日", "🎲", " ", ".", "\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "\\.", "\\n"),
    fc.constantFrom("[abc]", "[^a]", "[a-z]", "[\\d_-]", "[^\\s\\w]", "[é-日]", "\\u{1f3b2}", "\\x61", "[^]", "\\t"),
    tie("regex").map((body) => `(${body})`),
    tie("regex").map((body) => `(?:${body})`),
  ),
}));

const text = fc
  .array(fc.constantFrom("a", "b", "c", "z", "é", "日", "🎲", " ", "\n", "1", "_", ".", "\u2028"), { maxLength: 6 })
  .map((parts) => parts.join(""));

/**
 * The automaton of an expression; undefined for one that only matches the empty text. Others that
 * are refused are left out.
 */
function automatonOf(source: string): ByteAutomaton | undefined {
  try {
    return compile(source);
  } catch (error) {
    fc.pre(/only the empty text/.test((error as Error).message));
    return undefined;
  }
}

const context = createContext({ source: "", text: "" });

/**
 * Whether RegExp matches the whole text. Leaves out expressions whose backtracking takes more than
 * a second.
 */
function matches(source: string, text: string): boolean {
  Object.assign(context, { source, text });
  try {
    return runInContext('new RegExp(`^(?:${source})$`, "u").test(text)', context, { timeout: 1000 }) as boolean;
  } catch (error) {
    fc.pre((error as { code?: string }).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT");
    throw error;
  }
}

describe("parseRegex", () => {
  it("accepts the texts that JavaScript's RegExp with the flag u matches as a whole", () => {
    fc.assert(
      fc.property(regex, fc.array(text, { minLength: 5, maxLength: 20 }), (source, texts) => {
        const automaton = automatonOf(source);
        for (const each of texts) {
          const isAccepted = automaton === undefined ? each === "" : accepts(automaton, each);
          expect([each, isAccepted]).toEqual([each, matches(source, each)]);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("accepts only texts that RegExp matches", () => {
    fc.assert(
      fc.property(regex, fc.integer({ min: 0 }), (source, seed) => {
        const automaton = automatonOf(source);
        const random = new RandomStream(seed);
        const texts = Array.from({ length: 10 }, () => (automaton === undefined ? "" : sampleText(automaton, random)));
        for (const each of texts) expect([each, matches(source, each)]).toEqual([each, true]);
      }),
      { numRuns: 200 },
    );
  });

  it("matches a part of the text in a search, except at anchors", () => {
    const texts = ["", "ab", "xab", "abx", "xabx", "cd", "xcd", "cdx", "a\nb"];
    for (const source of [
      "ab",
      "^ab",
      "ab$",
      "^ab$",
      "^ab|cd$",
      "b|^c",
      "(ab|cd)$",
      "^(?:a|c)",
      "",
      "^",
      "$",
      "^$|b",
    ]) {
      const own = new RegExp(source, "u");
      const automaton = compile(source, { search: true });
      for (const each of texts)
        expect([source, each, accepts(automaton, each)]).toEqual([source, each, own.test(each)]);
    }
  });

  it.each<[string | RegExp, string[], string[]]>([
    ["^yes$|^no$", ["yes", "no"], ["", "yesno"]],
    [/yes|no/, ["yes"], ["y"]],
    [/a.b/s, ["a\nb"], ["ab"]],
    [/a.b/, ["a b"], ["a\nb"]],
    ["(?<year>\\d{4})-(?P<month>\\d\\d)", ["2024-05"], ["24-05"]],
    ['{"a": \\{1\\}}', ['{"a": {1}}'], ['{"a": 1}']],
    ["x{2,}]", ["xx]", "xxx]"], ["x]"]],
    ["[\\b\\]\\-^]", ["\b", "]", "-", "^"], ["b"]],
    ["\\cJ\\0\\/\\ud83c\\udfb2", ["\n\0/🎲"], []],
    ["[a-c-]+", ["a-c"], ["d"]],
    ["[]|a", ["a"], ["", "]"]],
    ["a?", ["", "a"], ["aa"]],
  ])("reads %s", (source, good, bad) => {
    const automaton = compile(source);
    expect(good.filter((each) => !accepts(automaton, each))).toEqual([]);
    expect(bad.filter((each) => accepts(automaton, each))).toEqual([]);
  });

  it.each<[string | RegExp, string]>([
    ["a(?=b)", "at character 3, lookaheads (?=...) are not supported"],
    ["a(?!b)", "lookaheads (?!...) are not supported"],
    ["(?<=a)b", "lookbehinds (?<=...) are not supported"],
    ["(?<!a)b", "lookbehinds (?<!...) are not supported"],
    ["(?>a)b", "atomic groups (?>...) are not supported"],
    ["(?i)a", "groups other than (...), (?:...) and (?<name>...) are not supported"],
    ["(a)\\1", "backreferences (\\1) are not supported"],
    ["(?<x>a)\\k<x>", "backreferences (\\k<name>) are not supported"],
    ["(?P<x>a)(?P=x)", "backreferences (?P=name) are not supported"],
    ["\\bword\\b", "word boundaries (\\b) are not supported"],
    ["\\p{L}", "Unicode properties (\\p{...}) are not supported"],
    ["\\Aa", "\\A is not supported"],
    ["\\q", "\\q has no meaning"],
    ["a^b", '"^" is supported only at the start or end'],
    ["(^a)", '"^" is supported only at the start or end'],
    ["a$b", 'nothing can match after "$"'],
    ["(a$)", '"$" is supported only at the start or end'],
    ["*a", '"*" has nothing to repeat'],
    ["a|{2}", "{...} has nothing to repeat"],
    ["a**", "a repetition follows another"],
    ["a{2}{3}", "a repetition follows another"],
    ["a++", "a repetition follows another"],
    ["a{3,2}", "the numbers of {3,2} are in the wrong order"],
    ["a{,3}", "write {0,n}"],
    ["(a", 'at its end, a "(" is not closed'],
    ["a)", 'a ")" has no matching "("'],
    ["[a", 'a "[" is not closed'],
    ["[b-a]", "the ends of a range are in the wrong order"],
    ["[a-\\d]", 'a range "-" needs a character on both sides'],
    ["[[:alpha:]]", "classes such as [:alpha:] are not supported"],
    ["a\\", "a character is missing"],
    ["\\ud800", "\\ud800 is not a character"],
    ["\\u{110000}", "\\u110000 is not a character"],
    ["(".repeat(201), "groups are nested more than 200 levels deep"],
    [/a/i, "Invalid regular expression /a/i: flag i is not supported"],
    [/a/m, "flag m is not supported"],
    [new RegExp("a", "v"), "flag v is not supported"],
    ["", "matches only the empty text"],
    ["a{0}|(?:)*", "matches only the empty text"],
    ["[]", "matches no text"],
    ["a[^\\s\\S]+b", "matches no text"],
    ["a{1000001}", "is too large: it needs more than 1000000 states"],
    ["(a?){100000000000}", "is too large"],
    ["a".repeat(1_000_000), "has 1000000 characters, more than 65536"],
    ["(ab|cd)".repeat(700_000), "has 4900000 characters, more than 65536"],
    ["a?b?c?d?".repeat(8000), "is too large"],
    ["(a|b)*a(a|b){16}", "is too large: its automaton needs more than 30000 states"],
  ])("rejects expressions, case %#", (source, message) => {
    expect(() => compile(source)).toThrowError(
      expect.objectContaining({ code: "INVALID_ARGUMENT", message: expect.stringContaining(message) as string }),
    );
  });
});
