import { excerpt } from "../../../core/format.js";

import { LlamaGymError, errorMessage } from "../../../core/errors.js";
import { unusedNoncharacters } from "../rendered-text.js";
import { type ContentMarks, withContentMarks } from "./content-marks.js";
import { MAX_DEPTH, checkSource, limitError, withRenderBudget } from "./limits.js";
import { TemplateError, createGlobalScope } from "./template-scope.js";
import { type CheckedTemplate, checkTemplate } from "./check-template.js";
import { TemplateInterpreter } from "./template-interpreter.js";
import { parseTemplate } from "./template-parser.js";
import { UnsupportedTemplate } from "./unsupported-template.js";

/** Maximum characters of a template's own message in an error. */
const MAX_REASON_LENGTH = 500;

/** Rendering inputs. */
export interface TemplateInput {
  /** Variables: messages, add_generation_prompt, tools, bos_token etc.; null is Python's None. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** Time of strftime_now; default now. */
  readonly now?: Date;
  /** Marks in the variables' texts; default none. */
  readonly marks?: ContentMarks;
}

/** Rendered text with the [start, end) ranges printed by {% generation %} blocks. */
export interface RenderedTemplate {
  readonly text: string;
  readonly generated: readonly (readonly [start: number, end: number])[];
}

/**
 * A chat template with Transformers' features: trim_blocks, lstrip_blocks, raise_exception,
 * strftime_now, tojson, loop controls and {% generation %}. Parsed once, rendered many times.
 */
export class ChatTemplate {
  /** Whether the template has {% generation %} blocks. */
  readonly marksGeneration: boolean;
  private readonly template: CheckedTemplate;

  /**
   * @throws TEMPLATE_FAILED for an invalid or unsupported template and TEMPLATE_LIMIT for one
   * beyond limits.ts.
   */
  constructor(readonly source: string) {
    checkSource(source);
    try {
      this.template = checkTemplate(parseTemplate(source));
    } catch (cause) {
      throw toTemplateError(cause, cause instanceof UnsupportedTemplate ? "cannot be used" : "is not valid Jinja");
    }
    this.marksGeneration = this.template.marksGeneration;
  }

  /**
   * Renders the template. @throws TEMPLATE_FAILED, whose `cause` has the message of
   * raise_exception, and TEMPLATE_LIMIT.
   */
  render(input: TemplateInput): string {
    return this.run(input, "", "");
  }

  /** Renders the template with the ranges that {% generation %} marks. @throws as `render`. */
  renderMarked(input: TemplateInput): RenderedTemplate {
    const text = this.render(input);
    if (!this.marksGeneration) return { text, generated: [] };
    const [open, close] = unusedNoncharacters([text]);
    if (close === undefined)
      throw new LlamaGymError(
        "TEMPLATE_FAILED",
        "The text uses all noncharacters, so {% generation %} cannot be marked.",
      );
    const marked = this.run(input, open, close);
    const generated: [number, number][] = [];
    let removed = 0;
    let start = 0;
    for (let i = 0; i < marked.length; i++) {
      if (marked[i] === open) start = i - removed++;
      else if (marked[i] === close) generated.push([start, i - removed++]);
    }
    return { text, generated };
  }

  private run({ variables, now, marks }: TemplateInput, open: string, close: string): string {
    try {
      const render = () => {
        const globals = createGlobalScope(variables, () => now ?? new Date());
        return new TemplateInterpreter(this.template, globals, { open, close }).render();
      };
      return withRenderBudget(() => (marks === undefined ? render() : withContentMarks(marks, render)));
    } catch (cause) {
      throw toTemplateError(cause, cause instanceof TemplateError ? "refused the conversation" : "failed");
    }
  }
}

function toTemplateError(cause: unknown, outcome: string): LlamaGymError {
  if (cause instanceof LlamaGymError) return cause;
  // The parser, and printing or comparing nested lists, recurse on the call stack.
  if (cause instanceof RangeError) return limitError(MAX_DEPTH, "nested expressions, blocks and calls", cause);
  const reason = errorMessage(cause);
  const fault = excerpt(reason, MAX_REASON_LENGTH).replace(/\.$/, "");
  return new LlamaGymError("TEMPLATE_FAILED", `The chat template ${outcome}: ${fault}.`, { cause });
}
