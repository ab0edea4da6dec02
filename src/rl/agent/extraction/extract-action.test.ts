import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { blackjackText } from "../../../envs/toy-text/blackjack-text.js";
import { editDistance } from "./choice-extractors.js";
import {
  actionExtractors,
  fromFunction,
  firstMatch,
  extractAction,
  ExtractionCounter,
  jsonAction,
  mentionedChoice,
  nearestChoice,
  numberedChoice,
  regexMatch,
  taggedAnswer,
  exactChoice,
  refine,
} from "./index.js";
import { parseLenientJson } from "./parse-lenient-json.js";

const moves = ["left", "right", "pick up"];

describe("extractAction", () => {
  it("returns the first result with its kind", () => {
    const strategies = [
      jsonAction(),
      regexMatch(/go (\w+)/),
      fromFunction((reply) => (reply === "x" ? "ex" : undefined)),
    ];
    expect(extractAction('go left {"action": [1, 2]}', strategies)).toEqual({ kind: "json", value: [1, 2] });
    expect(extractAction("go left, no, go right", strategies)).toEqual({ kind: "regex", value: "right" });
    expect(extractAction("x", strategies)).toEqual({ kind: "function", value: "ex" });
    expect(extractAction("y", strategies)).toMatchObject({
      kind: "failure",
      reason: "The completion names no action.",
    });
  });

  it.each<[string, string]>([
    ["", "The completion is empty."],
    ["<think>left", "The reasoning never ends, so there is no answer."],
    ["<think>left</think>\n", "There is no answer after the reasoning."],
    ["User: left", "The completion only contains text for the other speaker."],
    ['{"action": "fly"} to the left', 'The completion says "fly" (json), which is not an action.'],
    ["Action: fly", 'The completion says "fly" (tag), which is not an action.'],
    ["Hello.", "The completion names no action."],
  ])("says of %j: %s", (reply, reason) => {
    const found = extractAction(reply, actionExtractors({ choices: moves }));
    expect(found).toEqual({ kind: "failure", value: undefined, reason });
  });

  it("returns a choice or a failure for any text", () => {
    const part = fc.constantFrom(
      ..."left right pick up not or , . ? ! { } [ ] \" ' : <think> </think> <action> </action> Action: 1 #2 I will so \\ ` -".split(
        " ",
      ),
      "\n",
      " ",
      "é",
      "🎲",
    );
    const reply = fc.array(fc.oneof(part, fc.string({ unit: "binary", maxLength: 4 })), { maxLength: 40 });
    const strategies = actionExtractors({ choices: moves, pattern: /(\w+)!/ });
    fc.assert(
      fc.property(reply, fc.constantFrom("", " "), (parts, gap) => {
        const { kind, value } = extractAction(parts.join(gap), strategies);
        expect([undefined, ...moves]).toContain(value);
        expect(kind === "failure").toBe(value === undefined);
      }),
      { numRuns: 2000 },
    );
  });

  it("finds each choice alone, in JSON, in a tag and in a sentence", () => {
    const name = fc.stringMatching(/^[b-z]{2,6}( [b-z]{2,6})?$/);
    fc.assert(
      fc.property(fc.uniqueArray(name, { minLength: 1, maxLength: 6 }), fc.nat(), (choices, at) => {
        const choice = choices[at % choices.length];
        const strategies = actionExtractors({ choices });
        const replies = [
          choice,
          choice.toUpperCase(),
          JSON.stringify({ action: choice }),
          `<action>${choice}</action>`,
        ];
        const values = replies.map((reply) => extractAction(reply, strategies).value);
        expect(values).toEqual([choice, choice, choice, choice]);
        expect(mentionedChoice(choices, { where: "anywhere" })(`Q ${choice}, 7.`)?.value).toBe(choice);
      }),
    );
  });
});

describe("parseLenientJson", () => {
  it("agrees with JSON.parse at any offset", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(undefined, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        const found = parseLenientJson(`so ${text} it is`, 3);
        expect(found).toEqual({ value: JSON.parse(text) as unknown, end: 3 + text.length });
      }),
      { numRuns: 500 },
    );
  });

  it.each<[string, unknown]>([
    ["{'a': 'it\\'s', b: \"x\"}", { a: "it's", b: "x" }],
    ["[1, 2,, ]", [1, 2]],
    ["{a: True, b: False, c: None, d: null}", { a: true, b: false, c: null, d: null }],
    ['{"a": 1 /* one */, # two\n "b": -.5e1}', { a: 1, b: -5 }],
    ["{“a”: ‘b’}", { a: "b" }],
    ['{"a": "\\u00e9\\n\\q"}', { a: "é\nq" }],
    ['{"a": ["b", {"c": 1', { a: ["b", { c: 1 }] }],
    ['{"__proto__": 1}', JSON.parse('{"__proto__": 1}')],
  ])("reads %s", (text, value) => {
    expect(parseLenientJson(text, 0)?.value).toEqual(value);
  });

  it.each(["{hit}", "{'a' 1}", '{"a": "b', "[1 2x]", "left", "{1: 2}", "", "Truely", "[".repeat(40)])(
    "finds nothing in %s",
    (text) => {
      expect(parseLenientJson(text, 0)).toBeUndefined();
    },
  );
});

describe("extractors", () => {
  it("accept custom names", () => {
    expect(jsonAction({ keys: ["tool"] })('{"action": "a", "TOOL": "b"}')?.value).toBe("b");
    expect(jsonAction({ keys: ["tool"] })('{"action": "a"}')).toBeUndefined();
    expect(taggedAnswer({ names: ["next step"] })("Next step: wait\nAction: go")?.value).toBe("wait");
    expect(regexMatch(/(\w+)=(?<action>\w+)/i)("A=x b=y")).toEqual({ kind: "regex", value: "y" });
    expect(regexMatch(/\d+/g)("1 22")?.value).toBe("22");
  });

  it("number choices from 0 or from 1", () => {
    const numbered = (reply: string, first?: number) => numberedChoice(moves, { first })(reply)?.value;
    expect([numbered("1"), numbered("1", 1), numbered("option 3", 1), numbered("3")]).toEqual([
      "right",
      "left",
      "pick up",
      undefined,
    ]);
  });

  it("take the last mention anywhere if asked to", () => {
    const reply = "It was cold. He went left, then right. Nobody knows.";
    expect(mentionedChoice(moves)(reply)).toBeUndefined();
    expect(mentionedChoice(moves, { where: "anywhere" })(reply)?.value).toBe("right");
  });

  it("take the nearest choice within the threshold unless two are equally near", () => {
    const nearest = (reply: string, threshold?: number) =>
      nearestChoice([...moves, "light"], { threshold })(reply)?.value;
    expect([nearest("rihgt"), nearest("pikc upp"), nearest("lefttt"), nearest("lefttt", 0.5)]).toEqual([
      "right",
      "pick up",
      undefined,
      "left",
    ]);
    expect(nearest("tight")).toBeUndefined();
    expect(nearest("rihgt", 0)).toBeUndefined();
  });

  it("compose", () => {
    const way = firstMatch(refine(taggedAnswer(), exactChoice(["a1"])), regexMatch(/b\d/));
    expect(way("Action: a1")).toEqual({ kind: "tag", value: "a1" });
    expect(way("b2")).toEqual({ kind: "regex", value: "b2" });
    expect(way("Action: c")).toMatchObject({ kind: "failure" });
    expect(way("c")).toBeUndefined();
  });

  it("use the parser of an environment", () => {
    const read = (reply: string) =>
      extractAction(
        reply,
        actionExtractors({ choices: ["stay", "hit"] }, (text) => blackjackText.parseAction(text)),
      );
    expect(read("I will hit.")).toEqual({ kind: "mention", value: 1 });
    expect(read("Stand!")).toEqual({ kind: "function", value: 0 });
    expect(read('{"action": 0}')).toEqual({ kind: "json", value: 0 });
    const free = actionExtractors({}, (text) => (Number.isNaN(Number(text)) ? undefined : Number(text)));
    expect(extractAction('{"answer": -0.5}', free)).toEqual({ kind: "json", value: -0.5 });
    expect(extractAction("Answer: -0.5", free)).toEqual({ kind: "tag", value: -0.5 });
    expect(extractAction("7", free)).toEqual({ kind: "json", value: 7 });
    expect(extractAction("<answer>x</answer> 7", free)).toMatchObject({ kind: "failure" });
  });

  it("reject invalid lists of choices", () => {
    expect(() => actionExtractors({ choices: [] })).toThrowError(/`choices` is empty/);
    expect(() => actionExtractors({ choices: ["left", "->"] })).toThrowError(/"->" has no letter or digit/);
  });
});

describe("editDistance", () => {
  it("counts substitutions, insertions, deletions and swaps", () => {
    const pairs: [string, string, number][] = [
      ["", "abc", 3],
      ["kitten", "sitting", 3],
      ["right", "rihgt", 1],
      ["stay", "stay", 0],
      ["ca", "abc", 3],
      ["left", "felt", 2],
    ];
    for (const [a, b, distance] of pairs) expect([a, b, editDistance(a, b)]).toEqual([a, b, distance]);
  });

  it("is symmetric, 0 for equal texts only, and at most the longer length", () => {
    const word = fc.stringMatching(/^[ab ]{0,6}$/);
    fc.assert(
      fc.property(word, word, (a, b) => {
        const distance = editDistance(a, b);
        expect(distance).toBe(editDistance(b, a));
        expect(distance === 0).toBe(a === b);
        expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length));
        expect(distance).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
      }),
    );
  });
});

describe("ExtractionCounter", () => {
  it("returns fractions that sum to 1, and resets", () => {
    const counter = new ExtractionCounter();
    expect(counter.flush()).toEqual({});
    const strategies = actionExtractors({ choices: moves });
    for (const reply of ["left", "left", '{"action": "right"}', "?"]) counter.add(extractAction(reply, strategies));
    const shares = counter.flush();
    expect(shares).toMatchObject({ "extraction/choice": 0.5, "extraction/json": 0.25, "extraction/failed": 0.25 });
    expect(Object.keys(shares)).toHaveLength(10);
    expect(Object.values(shares).reduce((sum, share) => sum + share, 0)).toBe(1);
    expect(counter.flush()).toEqual({});
  });
});
