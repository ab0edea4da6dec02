import { describe, expect, it } from "vitest";
import { Facts } from "./facts.js";
import { KnowledgeBase } from "./knowledge-base.js";
import { Proposition } from "./proposition.js";

const RULES = `
# two boxes and a ball
type P {}
type r {
  predicates { at(P, r); south_of(r, r') = north_of(r', r); }
  rules { go/south :: at(P, r) & $south_of(r', r) -> at(P, r'); }   # the alias stands for north_of
  constraints { one :: at(P, r) & at(P, r') -> fail(); }
  inform7 { type { kind :: "room"; } commands { go/south :: "go south" :: "going south"; } }
}
type box { rules { swap :: $has(box) & has(box') -> !has(box'); } }
type small : box {}
`;

const fact = (name: string, ...things: [string, string][]) =>
  new Proposition(
    name,
    things.map(([thing, type]) => ({ name: thing, type })),
  );

describe("the rule language", () => {
  const knowledge = new KnowledgeBase(RULES, "test.json");

  it("expands aliases, keeps what is marked with $ and matches facts of narrower types", () => {
    const facts = new Facts([
      fact("at", ["P", "P"], ["hall", "r"]),
      fact("north_of", ["hall", "r"], ["yard", "r"]),
      fact("has", ["b1", "box"]),
      fact("has", ["b2", "small"]),
    ]);
    expect(facts.applicableActions(knowledge).map(String)).toEqual([
      "go/south :: at(P, hall: r) & $north_of(hall: r, yard: r) -> at(P, yard: r)",
      "swap :: $has(b1: box) & has(b2: small) -> not_has(b2: small)",
      "swap :: $has(b2: small) & has(b1: box) -> not_has(b1: box)",
    ]);
  });

  it.each([
    ["type a {", "expected predicates"],
    ["type a { rules { r :: x(a) -> ; } }", "expected a predicate"],
    ["type a : b {}", "type a extends b, which is not declared"],
    ["type a : b {} type b : a {}", "extends itself"],
    ["type a {} type a {}", "type a is declared twice"],
    ["type a { rules { r :: x(q) -> y(a); } }", "uses type q"],
    ["type a { predicates { p(a) = q(a); q(a) = p(a); } }", "refers to itself"],
    ["nonsense", 'expected "type"'],
  ])("rejects %j", (text, message) => {
    expect(() => new KnowledgeBase(text, "broken.json")).toThrow(message);
    expect(() => new KnowledgeBase(text, "broken.json")).toThrow("broken.json");
  });

  it("rejects rules that match in too many ways", () => {
    const things = Array.from({ length: 60 }, (_, i) => fact("x", [`a${i}`, "a"]));
    const wide = "type a { rules { r :: x(a) & x(a1: a) & x(a2: a) & x(a3: a) & x(a4: a) & no(a) -> y(a); } }";
    const facts = new Facts(things);
    expect(() => facts.applicableActions(new KnowledgeBase(wide, "wide.json"))).toThrow(/too many ways/);
  });
});
