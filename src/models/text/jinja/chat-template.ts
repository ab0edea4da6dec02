import { parse, tokenize } from "@huggingface/jinja";

import { LlamaGymError } from "../../../core/errors.js";
import { TemplateError, createTemplateScope } from "./template-scope.js";
import { TemplateInterpreter } from "./template-interpreter.js";
import { markOutputs } from "./nodes.js";
import { toPythonString } from "./python-text.js";
import { generationMarks, hasGenerationTags, prepareSource } from "./prepare-source.js";

/** Rendering inputs. */
export interface TemplateInput {
  /** Variables: messages, add_generation_prompt, tools, bos_token etc.; null is Python's None. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** Time of strftime_now; default now. */
  readonly now?: Date;
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
  private readonly program: ReturnType<typeof parse>;

  /** @throws TEMPLATE_FAILED for invalid templates. */
  constructor(readonly source: string) {
    this.marksGeneration = hasGenerationTags(source);
    try {
      this.program = parse(tokenize(prepareSource(source), { trim_blocks: false, lstrip_blocks: false }));
    } catch (cause) {
      throw new LlamaGymError("TEMPLATE_FAILED", `The chat template is not valid Jinja: ${getReason(cause)}.`, {
        cause,
      });
    }
    markOutputs(this.program.body);
  }

  /** Renders the template. @throws TEMPLATE_FAILED, whose `cause` has the message of raise_exception. */
  render(input: TemplateInput): string {
    return this.run(input, "", "");
  }

  /** Renders the template with the ranges that {% generation %} marks. @throws as `render`. */
  renderMarked(input: TemplateInput): RenderedTemplate {
    const text = this.render(input);
    if (!this.marksGeneration) return { text, generated: [] };
    const [open, close] = uniquePlaceholders(text);
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

  private run({ variables, now }: TemplateInput, open: string, close: string): string {
    const marks = { [generationMarks.open]: open, [generationMarks.close]: close };
    const scope = createTemplateScope({ ...variables, ...marks }, () => now ?? new Date());
    try {
      return toPythonString(new TemplateInterpreter(scope).run(this.program));
    } catch (cause) {
      const outcome = cause instanceof TemplateError ? "refused the conversation" : "failed";
      throw new LlamaGymError("TEMPLATE_FAILED", `The chat template ${outcome}: ${getReason(cause)}.`, { cause });
    }
  }
}

/** Returns two noncharacters that the text does not contain. */
export function uniquePlaceholders(text: string): [string, string] {
  const placeholders: string[] = [];
  for (let code = 0xfdd0; code <= 0xfdef && placeholders.length < 2; code++) {
    const placeholder = String.fromCharCode(code);
    if (!text.includes(placeholder)) placeholders.push(placeholder);
  }
  if (placeholders.length < 2)
    throw new LlamaGymError(
      "TEMPLATE_FAILED",
      "The text uses all noncharacters, so {% generation %} cannot be marked.",
    );
  return [placeholders[0], placeholders[1]];
}

function getReason(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, "");
}
