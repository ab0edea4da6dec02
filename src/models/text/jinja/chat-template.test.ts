import { describe, expect, it } from "vitest";

import { readTextFixture } from "../../../../test/support/text.js";
import { LlamaGymError } from "../../../core/errors.js";
import { ChatTemplate } from "./chat-template.js";
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

/** A rendering's text and marked parts, or why there is none; an empty reason where the wording is Python's own. */
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

describe("a failing template", () => {
  it("reports what it raises", () => {
    const template = new ChatTemplate("{{ raise_exception('Only one user, please.') }}");
    const error = failure(() => template.render({ variables: {} }));
    expect(error.message).toBe("The chat template refused the conversation: Only one user, please.");
    expect(cause(error)).toBe("Only one user, please.");
  });

  it.each(["{% for x in %}", "{{ a.b", "{% if a %}", "{{ 'open }}", "{% unknown %}", "{{ [1, }}", "{#"])(
    "is reported when it is no Jinja: %s",
    (source) => {
      expect(failure(() => new ChatTemplate(source)).code).toBe("TEMPLATE_FAILED");
    },
  );

  it("cannot make the program hang or run out of memory", () => {
    for (const source of [
      "{{ range(1000000000) | list }}",
      "{{ 'x' * 1000000000 }}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    ]) {
      expect(failure(() => new ChatTemplate(source).render({ variables: {} })).code).toBe("TEMPLATE_FAILED");
    }
  });

  it("has no access to JavaScript", () => {
    const template = new ChatTemplate(
      "{{ messages.constructor is defined }}{{ m.constructor is defined }}{{ ''.constructor is defined }}",
    );
    expect(template.render({ variables: { messages: [], m: {} } })).toBe("FalseFalseFalse");
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
