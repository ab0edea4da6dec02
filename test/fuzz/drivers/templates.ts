import { ChatTemplate, type RandomStream } from "../../../src/index.js";
import type { Driver } from "../driver.js";
import { readJsonFixture } from "../fixtures.js";
import { mutateText } from "../mutate.js";

type Random = RandomStream;

const MESSAGES = [
  { role: "system", content: "Be brief." },
  { role: "user", content: "Hit or stay?" },
  { role: "assistant", content: "stay", tool_calls: [{ function: { name: "f", arguments: { a: 1 } } }] },
];
const VARIABLES = { messages: MESSAGES, add_generation_prompt: true, bos_token: "<s>", eos_token: "</s>", tools: null };

const NAMES = ["messages", "m", "x", "ns", "loop", "namespace", "range", "dict", "nope", "f", "caller", "bos_token"];
const FILTERS = [
  ..."trim length upper list sort sum join(',') tojson tojson(indent=100000) reverse first last unique items".split(
    " ",
  ),
  ..."default('d') map(attribute='role') selectattr('role') string int float round(400) safe format".split(" "),
  ..."indent(100000) replace('','aa') batch(2) center(1e9)".split(" "),
];
const LITERALS = [
  ..."0 1 -1 5000000 1e308 'a' '' none true [] {} [1,[2,[3]]] {'a':{'b':1}} 'a'*5000000 [0]*100000000".split(" "),
  ..."range(5000000) range(0,1000000000,1) 2**100000 '%s'%1".split(" "),
];
const MEMBERS = [".role", "[0]", "[-1]", "[1:]", "[::-1]", ".__class__", ".constructor", "['__proto__']", ".items()"];
const METHODS = [".split('')", ".join(messages)", ".replace('', 'ab')", ".upper()", ".append(x)", ".get('a')", "(1)"];

function expression(random: Random, depth: number): string {
  if (depth === 0) return random.choice(random.integers(2) === 0 ? NAMES : LITERALS);
  const inner = () => expression(random, depth - 1);
  const kind = random.integers(8);
  if (kind === 0) return `${inner()} | ${random.choice(FILTERS)}`;
  if (kind === 1) return `${inner()}${random.choice(MEMBERS)}`;
  if (kind === 2) return `${inner()}${random.choice(METHODS)}`;
  if (kind === 3)
    return `(${inner()}) ${random.choice(["+", "*", "~", "==", "in", "and", "**", "//", "%"])} (${inner()})`;
  if (kind === 4) return `(${inner()} if ${inner()} else ${inner()})`;
  if (kind === 5) return `${inner()} is ${random.choice(["defined", "string", "mapping", "nope", "divisibleby 0"])}`;
  if (kind === 6) return "(".repeat(random.choice([1, 1, 2000])) + inner();
  return inner();
}

function statements(random: Random, depth: number): string {
  const value = () => expression(random, random.integers(3));
  const inner = () => (depth === 0 ? `{{ ${value()} }}` : statements(random, depth - 1));
  switch (random.integers(10)) {
    case 0:
      return `{% for ${random.choice(["m", "x", "m, x"])} in ${value()} %}${inner()}{% endfor %}`;
    case 1:
      return `{% if ${value()} %}${inner()}{% else %}${inner()}{% endif %}`;
    case 2:
      return `{% set ${random.choice(["x", "ns.x", "m", "x, m"])} = ${value()} %}${inner()}`;
    case 3:
      return `{% macro f(m) %}${inner()}{{ f(m) }}{% endmacro %}{{ f(${value()}) }}`;
    case 4:
      return `{% set ns = namespace(x=[1]) %}{% for m in range(${random.choice([10, 40, 1e9])}) %}{% set ns.x = ns.x + ns.x %}{% endfor %}${inner()}`;
    case 5:
      return `{% for m in range(30) %}`.repeat(1 + random.integers(8)) + inner();
    case 6:
      return `{% set x %}${inner()}{% endset %}${inner()}`;
    case 7:
      return `{% generation %}${inner()}{% endgeneration %}`;
    default:
      return `${inner()}${inner()}`;
  }
}

/** Closes the blocks of a template that its mutation left open, so that more templates parse. */
function closeBlocks(source: string): string {
  const open: string[] = [];
  for (const [, name] of source.matchAll(/\{%[-+]?\s*(\w+)/g)) {
    if (["for", "if", "macro", "generation"].includes(name)) open.push(name);
    else if (name === `end${open.at(-1)}`) open.pop();
  }
  return (
    source +
    open
      .reverse()
      .map((name) => `{% end${name} %}`)
      .join("")
  );
}

/** Chat templates: published ones with mutations, and programs of hostile pieces. */
export const templates: Driver = {
  timeLimitMs: 10_000,
  share: 2,
  start() {
    const published = readJsonFixture("text", "published-templates.json") as Record<string, { template: string }>;
    const sources = [
      ...Object.values(published).map(({ template }) => template),
      ...Object.values(readJsonFixture("text", "template-sources.json") as Record<string, string>),
    ];
    return Promise.resolve((random) => {
      const pieces = Array.from({ length: 3 }, () => statements(random, random.integers(4)));
      const source = random.integers(3) === 0 ? pieces.join("") : mutateText(random.choice(sources), pieces, random);
      const template = new ChatTemplate(random.integers(4) === 0 ? source : closeBlocks(source));
      template.renderMarked({ variables: VARIABLES });
      return Promise.resolve();
    });
  },
};
