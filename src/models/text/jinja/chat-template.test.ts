import { describe, expect, it } from "vitest";

import { readTextFixture } from "../../../../test/support/text.js";
import { LlamaGymError } from "../../../core/errors.js";
import { ChatTemplate } from "./chat-template.js";
import { MAX_SOURCE_LENGTH } from "./limits.js";
import { strftime } from "./strftime.js";

interface RenderedCase {
  name: string;
  template: string;
  messages: unknown[];
  variables: Record<string, unknown>;
  text?: string;
  generated?: [number, number][];
  error?: string | null;
}

type Published = Record<
  string,
  {
    template: string;
    cases: ({ messages: unknown[]; text?: string; error?: string } & Record<string, unknown>)[];
  } & Record<string, unknown>
>;

/**
 * A rendering's text and marked parts, or why there is none; an empty reason where the wording is
 * Python's own.
 */
type Outcome = { text: string; generated?: [number, number][] } | { error: string };

const cases = readTextFixture("templates.json") as RenderedCase[];

describe("a chat template renders as in Transformers", () => {
  it.each(cases.map((entry) => [entry.name, entry] as const))(
    "%s",
    (_, { template, messages, variables, ...python }) => {
      const expected: Outcome =
        python.text === undefined ? { error: python.error ?? "" } : { text: python.text, generated: python.generated };
      const ours = outcome(() => {
        const { text, generated } = new ChatTemplate(template).renderMarked({
          variables: { tools: null, documents: null, messages, ...variables },
        });
        // Python counts in characters, JavaScript in UTF-16 units.
        const characters = (end: number) => Array.from(text.slice(0, end)).length;
        return { text, generated: generated.map(([start, end]) => [characters(start), characters(end)]) };
      });
      expect(python.error === null && "error" in ours ? { error: "" } : ours).toEqual(expected);
    },
  );
});

describe("templates after published formats", () => {
  const published = readTextFixture("published-templates.json") as Published;
  it.each(Object.keys(published))("%s", (name) => {
    const { template, cases: renderings, ...tokens } = published[name];
    for (const { text, error, ...variables } of renderings) {
      const ours = outcome(() => ({
        text: new ChatTemplate(template).render({ variables: { tools: null, ...tokens, ...variables } }),
      }));
      expect(ours).toEqual(text === undefined ? { error } : { text });
    }
  });
});

describe("a construct renders as in jinja2", () => {
  const { variables, rows } = readTextFixture("constructs.json") as {
    variables: Record<string, unknown>;
    rows: { template: string; text?: string }[];
  };
  it.each(rows.map((row) => [row.template, row] as const))("%j", (template, { text }) => {
    const ours = outcome(() => ({ text: new ChatTemplate(template).render({ variables }) }));
    expect("text" in ours ? ours.text : undefined).toBe(text);
  });
});

describe("a failing template", () => {
  it("reports the message of raise_exception", () => {
    const template = new ChatTemplate("{{ raise_exception('Only one user, please.') }}");
    const error = failure(() => template.render({ variables: {} }));
    expect(error.message).toBe("The chat template refused the conversation: Only one user, please.");
    expect(cause(error)).toBe("Only one user, please.");
  });

  it.each(["{% for x in %}", "{{ a.b", "{% if a %}", "{{ 'open }}", "{% unknown %}", "{{ [1, }}", "{# x"])(
    "is reported when it is no Jinja: %s",
    (source) => {
      expect(failure(() => new ChatTemplate(source)).code).toBe("TEMPLATE_FAILED");
    },
  );

  it("has no access to JavaScript", () => {
    const template = new ChatTemplate(
      "{{ messages.constructor is defined }}{{ m.constructor is defined }}{{ ''.constructor is defined }}",
    );
    expect(template.render({ variables: { messages: [], m: {} } })).toBe("FalseFalseFalse");
  });
});

/** Templates that hang, exhaust the memory or overflow the call stack without limits. */
const hostile: Record<string, string> = {
  "nested loops":
    "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{{ c }}" +
    "{% endfor %}{% endfor %}{% endfor %}",
  "loops without output":
    "{% for a in range(99999) %}{% for b in range(99999) %}{% set x = b %}{% endfor %}{% endfor %}",
  "loops that continue": "{% for a in range(99999) %}{% for b in range(99999) %}{% continue %}{% endfor %}{% endfor %}",
  "loops with a condition": "{% for a in range(99999) %}{% for b in range(99999) if b < 0 %}{% endfor %}{% endfor %}",
  "loops over undefined names":
    "{% for a in range(99999) %}{% for b in range(99999) %}{{ nope }}{% endfor %}{% endfor %}",
  "macros defined in loops":
    "{% for a in range(99999) %}{% for b in range(99999) %}{% macro m() %}" +
    `${"{{ 1 }}".repeat(10_000)}{% endmacro %}{% endfor %}{% endfor %}`,
  "call blocks in loops":
    "{% macro m() %}{{ caller is none }}{% endmacro %}{% for a in range(99999) %}{% for b in range(99999) %}{% call m() %}" +
    `${"{{ 1 }}".repeat(10_000)}{% endcall %}{% endfor %}{% endfor %}`,
  "doubling lists":
    "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
  "doubling strings":
    "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
  "shared lists":
    "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
  "shared lists as JSON":
    "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}",
  "comparing shared lists":
    "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}" +
    "{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
  "deep lists":
    "{% set ns = namespace(x=[1]) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | tojson }}",
  "comparing deep lists":
    "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(90000) %}{% set ns.x = [ns.x] %}" +
    "{% set ns.y = [ns.y] %}{% endfor %}{{ ns.x < ns.y }}",
  "a recursive macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
  "macros that call each other":
    "{% macro f(n) %}{{ g(n) }}{{ g(n) }}{% endmacro %}{% macro g(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}",
  "exponential macros": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
  "a caller that calls itself":
    "{% macro m() %}{{ caller() }}{% endmacro %}{% macro n() %}{% call m() %}{{ n() }}{% endcall %}{% endmacro %}{{ n() }}",
  "a repeated string": "{{ 'x' * 1000000000 }}",
  "strings of 5,000,000 characters": "{% for i in range(99999) %}{{ 'x' * 5000000 }}{% endfor %}",
  "long strings that are kept":
    "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = ns.x + ['x' * 5000000] %}{% endfor %}",
  "searching a long string":
    "{% set t = 'x' * 5000000 %}{% for i in range(99999) %}{% if 'y' in t %}{% endif %}{% endfor %}",
  "splitting a long string":
    "{% set t = 'x' * 5000000 %}{% for i in range(99999) %}{% set a = t.split('x') %}{% endfor %}",
  "splitting words": "{% set t = 'x ' * 4000000 %}{% for i in range(99999) %}{% set a = t.split() %}{% endfor %}",
  "splitting lines": "{% set t = 'x\n' * 4000000 %}{% for i in range(99999) %}{% set a = t.splitlines() %}{% endfor %}",
  "stripping spaces": "{% set t = ' ' * 5000000 %}{% for i in range(99999) %}{% set a = t.strip() %}{% endfor %}",
  "printing quotes":
    "{% set t = ['\u0001' * 5000000] %}{% for i in range(99999) %}{% set a = t | string %}{% endfor %}",
  "title case": "{% set t = 'x ' * 4000000 %}{% for i in range(99999) %}{% set a = t | title %}{% endfor %}",
  "iterating over a string":
    "{% set t = 'x' * 5000000 %}{% for i in range(99999) %}{% for c in t %}{% break %}{% endfor %}{% endfor %}",
  "a join that amplifies": "{{ range(99999) | join('x' * 5000000) }}",
  "a join method that amplifies": "{{ ('x' * 5000000).join('y' * 5000000) }}",
  "a replacement that amplifies": "{{ ('x' * 1000000) | replace('x', 'y' * 1000000) }}",
  "a replace method that amplifies": "{{ ('x' * 1000000).replace('', 'y' * 1000000) }}",
  "an indentation that amplifies": "{{ ('x\n' * 1000000) | indent(1000000) }}",
  "a wide indentation": "{{ 'x' | indent(1000000000) }}",
  "a wide JSON indentation": "{{ [[[1]]] | tojson(indent=1000000000) }}",
  "JSON separators that amplify": "{{ range(99999) | list | tojson(separators=['x' * 1000000, ':']) }}",
  "a format that amplifies": "{{ ('{0}' * 1000000).format('x' * 1000000) }}",
  "dates that amplify": "{{ strftime_now('%c' * 4000000) }}",
  "large ranges":
    "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = ns.x + range(99999) | list %}{% endfor %}",
  "a membership in loops": "{% set t = range(99999) | list %}{% for i in t %}{% if -1 in t %}{% endif %}{% endfor %}",
  "sorting in loops": "{% set t = range(99999) | list %}{% for i in t %}{% set x = t | sort %}{% endfor %}",
  "summing in loops": "{% set t = range(99999) | list %}{% for i in t %}{% set x = t | sum %}{% endfor %}",
  "slices in loops": "{% set t = range(99999) | list %}{% for i in t %}{% set x = t[1:] %}{% endfor %}",
  "unpacked arguments": "{% set t = range(99999) | list %}{% for i in t %}{% set x = loop.cycle(*t) %}{% endfor %}",
  "copied dictionaries":
    "{% set ns = namespace(d={}) %}{% for i in range(99999) %}{% set ns.d = dict(ns.d, **{i | string: 1}) %}{% endfor %}",
  "deep parentheses": `{{ ${"(".repeat(20_000)}1${")".repeat(20_000)} }}`,
  "deep lists in the source": `{{ ${"[".repeat(20_000)}1${"]".repeat(20_000)} }}`,
  "deep negations": `{{ ${"not ".repeat(20_000)}1 }}`,
  "long sums": `{{ ${"1+".repeat(20_000)}1 }}`,
  "long filter chains": `{{ 1${"|string".repeat(10_000)} }}`,
  "deep blocks": `${"{% if 1 %}".repeat(5_000)}${"{% endif %}".repeat(5_000)}`,
  "a long source": "x".repeat(MAX_SOURCE_LENGTH + 1),
};

describe("an untrusted template", () => {
  it.each(Object.entries(hostile))(
    "ends at a limit: %s",
    (_, source) => {
      const error = failure(() => new ChatTemplate(source).render({ variables: {} }));
      expect(error.message).toMatch(/^The chat template exceeds the limit of [\d,]+ [a-z ,]+\. /);
      expect(error.code).toBe("TEMPLATE_LIMIT");
    },
    60_000,
  );

  it.each([
    "{% for x in range(9) %}{{ x",
    "{% set x %}",
    "{% macro m( %}",
    "{{ [1, 2",
    "{{ {'a': ",
    "{{ x | ",
    "{{ x is ",
    "{% filter upper %}",
    "{% call m() %}",
    "{{ f(",
    "{{ x[1:",
    "{{ x.",
    "{% if",
    "{{ loop.cycle() }}",
    "{% for x in [1] %}{{ loop.cycle().y }}{% endfor %}",
    "{{ namespace(1) }}",
    "{{ range('a') }}",
    "{{ (1).x.y }}",
    "{{ [] | first | length | first }}",
    "{{ {}['a'].b }}",
    "{{ 'a' | map('nope') | list }}",
    "{{ 1 | tojson(separators=[1]) + nope }}",
    "{{ 1 // 0 }}",
    "{{ 'a'.format(1)[::0] }}",
    "{% set x.y = 1 %}",
    "{% break %}",
  ])("fails with Jinja's reason or that it is incomplete: %s", (source) => {
    const error = failure(() => new ChatTemplate(source).render({ variables: {} }));
    expect(error.code).toBe("TEMPLATE_FAILED");
    expect(error.message).not.toMatch(/call stack|Cannot read|not a function|not iterable \(/);
  });

  it("renders long conversations within the limits", () => {
    const published = readTextFixture("published-templates.json") as Published;
    const content = "The quick brown fox jumps over the lazy dog. ".repeat(20);
    const messages = Array.from({ length: 1000 }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content }));
    for (const { template, cases: _, ...tokens } of Object.values(published)) {
      const text = new ChatTemplate(template).render({ variables: { tools: null, ...tokens, messages } });
      expect(text.length).toBeGreaterThan(content.trim().length * 2);
    }
  });

  it("excerpts the template's own message", () => {
    const error = failure(() => new ChatTemplate("{{ raise_exception('x' * 1000000) }}").render({ variables: {} }));
    expect(error.code).toBe("TEMPLATE_FAILED");
    expect(error.message.length).toBeLessThan(1000);
  });
});

it("prints the given time", () => {
  const template = new ChatTemplate("{{ strftime_now('%d %B %Y') }}");
  expect(template.render({ variables: {}, now: new Date(2026, 2, 5) })).toBe("05 March 2026");
});

it("formats times as Python's strftime", () => {
  const date = new Date(2026, 0, 9, 15, 4, 5);
  expect(strftime(date, "%a %A %b %B %d %-d %e %H %I %M %S %p %y %Y %j %F %T %%")).toBe(
    "Fri Friday Jan January 09 9  9 15 03 04 05 PM 26 2026 009 2026-01-09 15:04:05 %",
  );
});

function outcome(run: () => { text: string; generated?: number[][] }) {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof LlamaGymError) || error.code !== "TEMPLATE_FAILED") throw error;
    return { error: cause(error) };
  }
}

function failure(run: () => unknown): LlamaGymError {
  try {
    run();
  } catch (error) {
    return error as LlamaGymError;
  }
  throw new Error("it did not fail");
}

function cause(error: LlamaGymError): string {
  return error.cause instanceof Error ? error.cause.message : "";
}
